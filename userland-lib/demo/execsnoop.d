#!/usr/sbin/dtrace -s
/*
 * SPDX-FileCopyrightText: The DTrace for Linux authors
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Calls of execve(2): the program that made the call, the program that it starts, and the error
 * number.
 */

#pragma D option quiet

dtrace:::BEGIN
{
	printf("%-20s %6s %6s %-16s %4s %s\n", "TIME", "PID", "PPID", "BY", "ERR", "PROGRAM");
}

syscall::execve:entry
{
	self->program = copyinstr(arg0);
	self->by = execname;
}

syscall::execve:return
/self->program != NULL/
{
	printf("%-20Y %6d %6d %-16s %4d %s\n", walltimestamp, pid, ppid, self->by, errno,
	    self->program);
	self->program = 0;
	self->by = 0;
}
