/* SPDX-License-Identifier: GPL-2.0-only */
/* SPDX-FileCopyrightText: The DTrace for Linux authors */

io:::start
{
	trace(args[0]->pid);
	trace(args[1]);
}
