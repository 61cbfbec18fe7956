/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* SPDX-FileCopyrightText: The DTrace for Linux authors */

BEGIN
{
	trace(`jiffies_64);
	trace(`current_task->pid);
	trace((int)`untyped);
	trace(&`untyped);
}
