/* SPDX-License-Identifier: GPL-2.0-only */
/* SPDX-FileCopyrightText: The DTrace for Linux authors */

fbt::wake_up_process:entry
{
	trace(args[pid]);
}
