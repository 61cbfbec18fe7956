/* SPDX-License-Identifier: GPL-2.0-only */
/* SPDX-FileCopyrightText: The DTrace for Linux authors */

BEGIN
{
	trace(((struct task_struct *)1) != (size_tt *)arg0);
}
