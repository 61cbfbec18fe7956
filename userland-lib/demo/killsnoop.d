#!/usr/sbin/dtrace -s
/*
 * SPDX-FileCopyrightText: The DTrace for Linux authors
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Signals that processes send with kill(2), tkill(2) and tgkill(2).
 */

#pragma D option quiet

dtrace:::BEGIN
{
	printf("%6s %-16s %7s %3s %4s\n", "FROM", "COMM", "TO", "SIG", "ERR");
}

syscall::kill:entry,
syscall::tkill:entry
{
	self->to = (int)arg0;
	self->signal = (int)arg1 + 1;
}

syscall::tgkill:entry
{
	self->to = (int)arg1;
	self->signal = (int)arg2 + 1;
}

syscall::kill:return,
syscall::tkill:return,
syscall::tgkill:return
/self->signal/
{
	printf("%6d %-16s %7d %3d %4d\n", pid, execname, self->to, self->signal - 1, errno);
	self->to = 0;
	self->signal = 0;
}
