/* SPDX-License-Identifier: GPL-2.0-only */
/* SPDX-FileCopyrightText: The DTrace for Linux authors */

syscall:::entry
/pid == $target && execname != "dtrace" || arg0 / 2 > 3/
{
	@[execname] = count();
}
