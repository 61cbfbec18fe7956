/*
 * SPDX-FileCopyrightText: The DTrace for Linux authors
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * @args: -q
 * The conversions of printf() with their flags.
 */

BEGIN
{
	printf("%d %i %u %x %X %o|\n", -1, 97, 97, 255, 255, 8);
	printf("%5d|%-5d|%05d|%+d|%.3d|%*d|\n", 42, 42, 42, 42, 7, 6, 42);
	printf("%s|%10s|%-10s|%.2s|%c|%%|\n", "abc", "abc", "abc", "abc", 'z');
	printf("no conversion\n");
	exit(0);
}
