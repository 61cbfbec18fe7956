#!/usr/sbin/dtrace -s
/*
 * SPDX-FileCopyrightText: The DTrace for Linux authors
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Number of calls of the methods of a Java program (-c or -p) and total time in nanoseconds,
 * including called methods. Start the program with java -XX:+DTraceMethodProbes, which makes it
 * slow.
 */

#pragma D option quiet
#pragma D option zdefs
#pragma D option dynvarsize=16m

hotspot$target:::method-entry
{
	self->depth++;
	self->began[self->depth] = timestamp;
}

hotspot$target:::method-return
/self->depth/
{
	this->class = copyinstr(arg1, arg2 + 1);
	this->method = copyinstr(arg3, arg4 + 1);
	@calls[this->class, this->method] = count();
	@nanos[this->class, this->method] = sum(timestamp - self->began[self->depth]);
	self->began[self->depth] = 0;
	self->depth--;
}

dtrace:::END
{
	printf("%8s %14s  %s\n", "COUNT", "NANOSECONDS", "METHOD");
	printa("%@8d %@14d  %s.%s\n", @calls, @nanos);
}
