#!/usr/sbin/dtrace -s
/*
 * SPDX-FileCopyrightText: The DTrace for Linux authors
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Total time of the functions of a module in a process (-c or -p), with and without the functions
 * of the same module that they call: pid-times.d a.out -c COMMAND. Times are in nanoseconds.
 */

#pragma D option quiet

pid$target:$1::entry
{
	self->depth++;
	self->began[self->depth] = timestamp;
	self->called[self->depth] = 0;
}

pid$target:$1::return
/self->depth && self->began[self->depth]/
{
	this->whole = timestamp - self->began[self->depth];
	@calls[probefunc] = count();
	@whole[probefunc] = sum(this->whole);
	@own[probefunc] = sum(this->whole - self->called[self->depth]);
	self->began[self->depth] = 0;
	self->called[self->depth] = 0;
	self->depth--;
	self->called[self->depth] += this->whole;
}

dtrace:::END
{
	printf("%8s %14s %14s  %s\n", "COUNT", "WHOLE", "OWN", "FUNCTION");
	printa("%@8d %@14d %@14d  %s\n", @calls, @whole, @own);
}
