#!/usr/sbin/dtrace -s
/*
 * SPDX-FileCopyrightText: The DTrace for Linux authors
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Files whose status or accessibility programs query without opening them.
 */

#pragma D option quiet

dtrace:::BEGIN
{
	printf("%6s %-16s %-12s %4s %s\n", "PID", "COMM", "CALL", "ERR", "PATH");
}

syscall::newstat:entry,
syscall::newlstat:entry,
syscall::access:entry
{
	self->path = arg0;
}

syscall::newfstatat:entry,
syscall::statx:entry,
syscall::faccessat:entry,
syscall::faccessat2:entry
{
	self->path = arg1;
}

syscall::newstat:return,
syscall::newlstat:return,
syscall::access:return,
syscall::newfstatat:return,
syscall::statx:return,
syscall::faccessat:return,
syscall::faccessat2:return
/self->path/
{
	printf("%6d %-16s %-12s %4d %s\n", pid, execname, probefunc, errno,
	    copyinstr(self->path));
	self->path = 0;
}
