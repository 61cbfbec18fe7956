/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* SPDX-FileCopyrightText: The DTrace for Linux authors */

io:::start
{
	trace(args[0]->pid);
	trace(args[1]);
}
