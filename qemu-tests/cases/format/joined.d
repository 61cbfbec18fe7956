/*
 * SPDX-FileCopyrightText: The DTrace for Linux authors
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * @args: -q
 * Several aggregations of one printa() are joined by their keys; what is missing is 0.
 */

BEGIN
{
	@count["sh", 7] = count();
	@count["ls", 8] = count();
	@count["ls", 8] = count();
	@average["sh", 7] = avg(-5);
	@average["sh", 7] = avg(0);
	@average["cc", 9] = avg(100);
	printa("%-4s %d %@4d %@4d\n", @count, @average);
	printa(@count, @average);
	exit(0);
}
