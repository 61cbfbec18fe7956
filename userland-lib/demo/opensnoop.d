#!/usr/sbin/dtrace -s
/*
 * SPDX-FileCopyrightText: The DTrace for Linux authors
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Files that are opened, with the resulting descriptor or error number.
 */

#pragma D option quiet

dtrace:::BEGIN
{
	printf("%6s %-16s %4s %4s %s\n", "PID", "COMM", "FD", "ERR", "PATH");
}

syscall::open:entry
{
	self->path = arg0;
}

syscall::openat:entry,
syscall::openat2:entry
{
	self->path = arg1;
}

syscall::open:return,
syscall::openat:return,
syscall::openat2:return
/self->path/
{
	printf("%6d %-16s %4d %4d %s\n", pid, execname, errno ? -1 : (int)arg0, errno,
	    copyinstr(self->path));
	self->path = 0;
}
