#!/usr/sbin/dtrace -s
/*
 * SPDX-FileCopyrightText: The DTrace for Linux authors
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * The 20 kernel and user stacks of programs that occur most often, sampled 97 times a second.
 * Interpreted functions are shown in brackets.
 */

#pragma D option quiet

profile:::profile-97
/pid/
{
	@stacks[execname, stack(), ustack()] = count();
}

dtrace:::END
{
	trunc(@stacks, 20);
	printa("%s%k%k%@16d\n\n", @stacks);
}
