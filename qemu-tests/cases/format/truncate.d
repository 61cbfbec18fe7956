/*
 * SPDX-FileCopyrightText: The DTrace for Linux authors
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * @args: -q
 * trunc() keeps the greatest values, or the least for a negative number.
 */

BEGIN
{
	@high["a"] = sum(10);
	@high["b"] = sum(-5);
	@high["c"] = sum(20);
	@high["d"] = sum(0);
	@low["a"] = sum(10);
	@low["b"] = sum(-5);
	@low["c"] = sum(20);
	@low["d"] = sum(0);
	trunc(@high, 2);
	trunc(@low, -2);
	printa("high %s %@d\n", @high);
	printa("low %s %@d\n", @low);
	trunc(@high);
	printa("gone %s %@d\n", @high);
	exit(0);
}
