#!/usr/sbin/dtrace -s
/*
 * SPDX-FileCopyrightText: The DTrace for Linux authors
 * SPDX-License-Identifier: GPL-2.0-only
 *
 * The modules that Python programs look for, in the order in which that ends, each below those that it needs itself; how long that took, with
 * what was needed, and whether the module was found.
 */

#pragma D option quiet
#pragma D option zdefs
#pragma D option temporal

dtrace:::BEGIN
{
	printf("%6s %12s %5s  %s\n", "PID", "NANOSECONDS", "FOUND", "MODULE");
}

python*:::import-find-load-start
{
	self->depth++;
	self->began[self->depth] = timestamp;
}

python*:::import-find-load-done
/self->depth/
{
	printf("%6d %12d %5s  %*s%s\n", pid, timestamp - self->began[self->depth], arg1 ? "yes" : "no", self->depth * 2 - 2, "",
	    copyinstr(arg0));
	self->began[self->depth] = 0;
	self->depth--;
}
