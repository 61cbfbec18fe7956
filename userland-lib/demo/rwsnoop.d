#!/usr/sbin/dtrace -s
/*
 * SPDX-FileCopyrightText: The DTrace for Linux authors
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Successful reads and writes, with their size and file descriptor.
 */

#pragma D option quiet

dtrace:::BEGIN
{
	printf("%6s %-16s %1s %8s %s\n", "PID", "COMM", "D", "BYTES", "FD");
}

syscall::read:entry,
syscall::write:entry,
syscall::pread64:entry,
syscall::pwrite64:entry
/pid != $pid/
{
	self->fd = arg0 + 1;
}

syscall::read:return,
syscall::pread64:return
/self->fd && errno == 0/
{
	printf("%6d %-16s %1s %8d %d\n", pid, execname, "R", arg0, self->fd - 1);
}

syscall::write:return,
syscall::pwrite64:return
/self->fd && errno == 0/
{
	printf("%6d %-16s %1s %8d %d\n", pid, execname, "W", arg0, self->fd - 1);
}

syscall::read:return,
syscall::write:return,
syscall::pread64:return,
syscall::pwrite64:return
{
	self->fd = 0;
}
