#!/usr/sbin/dtrace -s
/*
 * SPDX-FileCopyrightText: The DTrace for Linux authors
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * wakers.d: what a command wakes, and what wakes it.
 */

#pragma D option quiet

sched:::wakeup
/pid == $target || args[1]->pr_pid == $target/
{
	pid == $target ? (@wakes[args[1]->pr_fname] = count()) :
	    (@woken[pid ? "by a process" : "by the idle CPU"] = count());
}

dtrace:::END
{
	printa("wakes %s %@d\n", @wakes);
	printa("woken %s %@d\n", @woken);
}
