/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* SPDX-FileCopyrightText: The DTrace for Linux authors */

BEGIN
{
	trace(((struct task_struct *)1) != (size_tt *)arg0);
}
