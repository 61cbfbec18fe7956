#!/usr/sbin/dtrace -s
/*
 * SPDX-FileCopyrightText: The DTrace for Linux authors
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Modules that Python programs import, in the order in which the imports end, indented by depth;
 * the duration including nested imports, and whether the module was found.
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
