/* SPDX-License-Identifier: GPL-2.0-only */
/* SPDX-FileCopyrightText: The DTrace for Linux authors */

BEGIN
{
	trace(`jiffies_64);
	trace(`current_task->pid);
	trace((int)`untyped);
	trace(&`untyped);
}
