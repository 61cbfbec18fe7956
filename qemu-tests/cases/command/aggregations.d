/*
 * SPDX-FileCopyrightText: The DTrace for Linux authors
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * @args: -q
 * Aggregations that nobody prints are printed at the end, sorted by their values.
 */

BEGIN
{
	@count["b"] = count();
	@count["b"] = count();
	@count["a"] = count();
	@sum[1] = sum(40);
	@sum[1] = sum(2);
	@min = min(3);
	@min = min(-3);
	@max = max(3);
	@max = max(-3);
	@avg = avg(10);
	@avg = avg(20);
	exit(0);
}
