/*
 * SPDX-FileCopyrightText: The DTrace for Linux authors
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * @args: -q
 * A distribution over orders of magnitude has negative values as well.
 */

BEGIN
{
	@ = llquantize(-99, 4, 1, 1, 4);
	@ = llquantize(-8, 4, 1, 1, 4);
	@ = llquantize(-3, 4, 1, 1, 4);
	@ = llquantize(3, 4, 1, 1, 4);
	@ = llquantize(7, 4, 1, 1, 4);
	@ = llquantize(99, 4, 1, 1, 4);
	exit(0);
}
