#!/usr/sbin/dtrace -s
/*
 * SPDX-FileCopyrightText: The DTrace for Linux authors
 * SPDX-License-Identifier: GPL-2.0-only
 *
 * How often a process (-c or -p) calls which functions of a module, and from where: pid-calls.d a.out -c COMMAND.
 */

#pragma D option quiet

pid$target:$1::entry
{
	@calls[probefunc, ucaller] = count();
}

dtrace:::END
{
	printf("%8s  %-30s %s\n", "COUNT", "FUNCTION", "CALLER");
	printa("%@8d  %-30s %A\n", @calls);
}
