/*
 * SPDX-FileCopyrightText: The DTrace for Linux authors
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * @args: -q -x aggsortkey -x aggsortkeypos=1 -x aggsortrev
 * Rows are sorted by the second value of their keys, downwards; numbers count as unsigned.
 */

BEGIN
{
	@["a", -1] = count();
	@["b", 2] = count();
	@["c", 1] = count();
	@["d", -2] = count();
	printa("%s %d\n", @);
	exit(0);
}
