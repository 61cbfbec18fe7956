/*
 * SPDX-FileCopyrightText: The DTrace for Linux authors
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * @args: -q
 * A distribution by powers of two.
 */

BEGIN
{
	@["dist"] = quantize(1);
	@["dist"] = quantize(2);
	@["dist"] = quantize(3);
	@["dist"] = quantize(100);
	exit(0);
}
