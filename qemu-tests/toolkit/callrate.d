#!/usr/sbin/dtrace -s
/*
 * SPDX-FileCopyrightText: The DTrace for Linux authors
 * SPDX-License-Identifier: GPL-2.0-only
 *
 * callrate.d: calls of a command, printed each 20 ms with a heading each ten lines; and all of them.
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
