/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* SPDX-FileCopyrightText: The DTrace for Linux authors */

fbt::wake_up_process:entry
{
	trace(args[pid]);
}
