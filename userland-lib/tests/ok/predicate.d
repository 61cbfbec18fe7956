/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* SPDX-FileCopyrightText: The DTrace for Linux authors */

syscall:::entry
/pid == $target && execname != "dtrace" || arg0 / 2 > 3/
{
	@[execname] = count();
}
