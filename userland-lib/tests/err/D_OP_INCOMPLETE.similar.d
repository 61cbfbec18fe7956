/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* SPDX-FileCopyrightText: The DTrace for Linux authors */

struct task_strct *p;
BEGIN
{
	trace(p->pid);
}
