/* SPDX-License-Identifier: GPL-2.0-only */
/* SPDX-FileCopyrightText: The DTrace for Linux authors */

struct task_strct *p;
BEGIN
{
	trace(p->pid);
}
