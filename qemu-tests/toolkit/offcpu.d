#!/usr/sbin/dtrace -s
/*
 * SPDX-FileCopyrightText: The DTrace for Linux authors
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * offcpu.d: how long a command is off the CPUs, and how often.
 */

#pragma D option quiet

sched:::off-cpu
/pid == $target/
{
	self->off = timestamp;
}

sched:::on-cpu
/pid == $target/
{
	self->off ? @off["off"] = sum((timestamp - self->off) / 1000000) : 1;
	self->off ? @times = count() : 1;
	self->off = 0;
}

dtrace:::END
{
	printa("%s %@d ms\n", @off);
	printa("%@d times\n", @times);
}
