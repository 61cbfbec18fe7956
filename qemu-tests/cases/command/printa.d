/*
 * SPDX-FileCopyrightText: The DTrace for Linux authors
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * @args: -q
 * printa() with a format, without one, and after clear().
 */

BEGIN
{
	@a["x"] = sum(5);
	@a["y"] = sum(3);
	printa("%s=%@d;", @a);
	printf("\n");
	printa(@a);
	clear(@a);
	printa("%s=%@d;", @a);
	printf("\n");
	exit(0);
}
