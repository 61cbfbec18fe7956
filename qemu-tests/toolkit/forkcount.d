#!/usr/sbin/dtrace -s
/*
 * SPDX-FileCopyrightText: The DTrace for Linux authors
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * forkcount.d: the children of a command: what creates them, what they execute and how they end.
 */

#pragma D option quiet

proc:::create
/pid == $target/
{
	children++;
	@made[execname, args[0]->pr_psargs] = count();
	mine[args[0]->pr_pid] = 1;
}

proc:::exec-success
/mine[pid]/
{
	@ran[execname] = count();
}

proc:::exit
/mine[pid]/
{
	args[0] == CLD_EXITED ? (@ends["exited"] = count()) :
	    args[0] == CLD_KILLED ? (@ends["killed"] = count()) : (@ends["dumped"] = count());
	mine[pid] = 0;
}

dtrace:::END
{
	printf("%d children\n", children);
	printa("%@d of %s (%s)\n", @made);
	printa("%@d ran %s\n", @ran);
	printa("%@d %s\n", @ends);
}
