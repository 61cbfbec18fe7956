/*
 * SPDX-FileCopyrightText: The DTrace for Linux authors
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * @args: -q
 * A linear distribution has open ends; a margin of one bucket is shown.
 */

BEGIN
{
	@["open"] = lquantize(-11, -10, 20, 10);
	@["open"] = lquantize(0, -10, 20, 10);
	@["open"] = lquantize(0, -10, 20, 10);
	@["open"] = lquantize(20, -10, 20, 10);
	exit(0);
}
