#!/usr/sbin/dtrace -s
/*
 * SPDX-FileCopyrightText: The DTrace for Linux authors
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Number of calls of the functions of a module in a process (-c or -p), by function and caller:
 * pid-calls.d a.out -c COMMAND.
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
