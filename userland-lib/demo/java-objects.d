#!/usr/sbin/dtrace -s
/*
 * SPDX-FileCopyrightText: The DTrace for Linux authors
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Objects that a Java program (-c or -p) allocates, by class: number and bytes. Start the program
 * with java -XX:+DTraceAllocProbes.
 */

#pragma D option quiet
#pragma D option zdefs

hotspot$target:::object-alloc
{
	this->class = copyinstr(arg1, arg2 + 1);
	@objects[this->class] = count();
	@bytes[this->class] = sum(arg3);
}

dtrace:::END
{
	printf("%8s %12s  %s\n", "COUNT", "BYTES", "CLASS");
	printa("%@8d %@12d  %s\n", @objects, @bytes);
}
