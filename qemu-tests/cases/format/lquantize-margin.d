/*
 * SPDX-FileCopyrightText: The DTrace for Linux authors
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * @args: -q
 * Empty buckets at both ends are left out but for one.
 */

BEGIN
{
	@ = lquantize(50, 0, 100, 10);
	@ = lquantize(70, 0, 100, 10);
	exit(0);
}
