/*
 * SPDX-FileCopyrightText: The DTrace for Linux authors
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * @args: -q
 * %S and %C print what a terminal does not show as in a C string.
 */

BEGIN
{
	printf("%S|%C|%C|%5s|%.2s|\n", "a\tb\"\033", 'A', '\n', "x\ty", "abc");
	exit(0);
}
