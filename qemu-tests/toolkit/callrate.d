#!/usr/sbin/dtrace -s
/*
 * SPDX-FileCopyrightText: The DTrace for Linux authors
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * callrate.d: calls of a command, printed every 20 ms with a heading every ten lines; and totals.
 */

#pragma D option quiet
#pragma D option aggsortrev

dtrace:::BEGIN
{
	line = 0;
}

syscall:::entry
/pid == $target/
{
	@[probefunc] = count();
	@now = count();
}

profile:::tick-20ms
{
	line % 10 == 0 ? printf("%10s\n", "CALLS") : 1;
	line++;
	printa("now %@d\n", @now);
	clear(@now);
}

dtrace:::END
{
	printa("now %@d\n", @now);
	printa("%s %@d\n", @);
}
