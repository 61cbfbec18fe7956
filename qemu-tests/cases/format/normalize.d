/*
 * SPDX-FileCopyrightText: The DTrace for Linux authors
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * @args: -q
 * normalize() divides what is printed until denormalize(); means are rounded towards zero.
 */

BEGIN
{
	@["x"] = sum(-1000);
	normalize(@, 300);
	printa("%@d\n", @);
	denormalize(@);
	printa("%@d\n", @);
	@deviation = stddev(-20);
	@deviation = stddev(20);
	printa("%@d\n", @deviation);
	exit(0);
}
