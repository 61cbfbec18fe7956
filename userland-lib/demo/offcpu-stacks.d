#!/usr/sbin/dtrace -s
/*
 * SPDX-FileCopyrightText: The DTrace for Linux authors
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * The 20 kernel and user stacks where a program (-c or -p) waits longest, with the total time off
 * the CPU in nanoseconds. Interpreted functions are shown in brackets.
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
