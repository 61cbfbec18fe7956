#!/usr/sbin/dtrace -s
/*
 * SPDX-FileCopyrightText: The DTrace for Linux authors
 * SPDX-License-Identifier: GPL-2.0-only
 *
 * Where a program (-c or -p) waits, as stacks of the kernel and of its own, with the nanoseconds that it was off the CPU there. Functions that
 * are interpreted stand in brackets.
 */

#pragma D option quiet

sched:::off-cpu
/pid == $target/
{
	self->left = timestamp;
}

sched:::on-cpu
/self->left/
{
	@nanos[stack(), ustack()] = sum(timestamp - self->left);
	self->left = 0;
}

dtrace:::END
{
	trunc(@nanos, 20);
	printa("%k%k%@16d\n\n", @nanos);
}
