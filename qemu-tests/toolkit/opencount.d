#!/usr/sbin/dtrace -s
/*
 * SPDX-FileCopyrightText: The DTrace for Linux authors
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * opencount.d: which files a command opens, and failures. Uses aggregations behind a condition.
 */

#pragma D option quiet

syscall::open:entry,
syscall::openat:entry
/pid == $target/
{
	self->path = copyinstr(probefunc == "open" ? arg0 : arg1);
}

syscall::open:return,
syscall::openat:return
/self->path != NULL/
{
	errno == 0 ? @good[self->path] = count() : (@bad[self->path, errno] = count());
	self->path = 0;
}

dtrace:::END
{
	printa("%@6d %s\n", @good);
	printa("%@6d %s failed with %d\n", @bad);
}
