/*
 * SPDX-FileCopyrightText: The DTrace for Linux authors
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * @args: -q
 * An increment may be negative; then bars grow to the left of a line.
 */

BEGIN
{
	@ = quantize(1, -1);
	@ = quantize(2, 3);
	exit(0);
}
