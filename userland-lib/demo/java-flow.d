#!/usr/sbin/dtrace -s
/*
 * SPDX-FileCopyrightText: The DTrace for Linux authors
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Calls of methods in a Java program (-c or -p), by thread, indented by depth. Start the program
 * with java -XX:+DTraceMethodProbes. An optional argument names the class whose methods begin the
 * trace, in the JVM's spelling: java-flow.d org/shop/Sale.
 */

#pragma D option quiet
#pragma D option zdefs
#pragma D option temporal
#pragma D option defaultargs

self int depth;

hotspot$target:::method-entry
/self->depth || $$1 == "" || copyinstr(arg1, arg2 + 1) == $$1/
{
	printf("%6d  %*s-> %s.%s\n", tid, self->depth * 2, "", copyinstr(arg1, arg2 + 1), copyinstr(arg3, arg4 + 1));
	self->depth++;
}

hotspot$target:::method-return
/self->depth/
{
	self->depth--;
	printf("%6d  %*s<- %s.%s\n", tid, self->depth * 2, "", copyinstr(arg1, arg2 + 1), copyinstr(arg3, arg4 + 1));
}
