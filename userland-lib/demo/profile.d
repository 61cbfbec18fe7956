#!/usr/sbin/dtrace -s
/*
 * SPDX-FileCopyrightText: The DTrace for Linux authors
 * SPDX-License-Identifier: GPL-2.0-only
 *
 * What the machine does, as stacks of the kernel and of programs, sampled 97 times a second. Functions of programs that are interpreted stand in
 * brackets.
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
