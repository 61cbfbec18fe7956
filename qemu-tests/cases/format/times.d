/*
 * SPDX-FileCopyrightText: The DTrace for Linux authors
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * @args: -q
 * %Y and %T print a time of the wall clock, here in UTC.
 */

BEGIN
{
	printf("%Y\n", (uint64_t)951782400000000000);
	printf("%T\n", (uint64_t)951782400000000000);
	exit(0);
}
