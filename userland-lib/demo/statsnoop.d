#!/usr/sbin/dtrace -s
/*
 * SPDX-FileCopyrightText: The DTrace for Linux authors
 * SPDX-License-Identifier: GPL-2.0-only
 *
 * Files that programs look for without opening them.
 */

#pragma D option quiet

dtrace:::BEGIN
{
	printf("%6s %-16s %-12s %4s %s\n", "PID", "COMM", "CALL", "ERR", "PATH");
}

syscall::stat:entry,
syscall::lstat:entry,
syscall::access:entry
{
	self->path = copyinstr(arg0);
}

syscall::newfstatat:entry,
syscall::statx:entry,
syscall::faccessat:entry,
syscall::faccessat2:entry
{
	self->path = copyinstr(arg1);
}

syscall::stat:return,
syscall::lstat:return,
syscall::access:return,
syscall::newfstatat:return,
syscall::statx:return,
syscall::faccessat:return,
syscall::faccessat2:return
/self->path != NULL/
{
	printf("%6d %-16s %-12s %4d %s\n", pid, execname, probefunc, errno, self->path);
	self->path = 0;
}
