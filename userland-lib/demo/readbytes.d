#!/usr/sbin/dtrace -s
/*
 * SPDX-FileCopyrightText: The DTrace for Linux authors
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Bytes that programs read, write, receive and send, by program and system call.
 */

#pragma D option quiet

syscall::*read*:return,
syscall::*write*:return,
syscall::recv*:return,
syscall::send*:return
/errno == 0 && (int64_t)arg0 > 0 && pid != $pid/
{
	@bytes[execname, probefunc] = sum(arg0);
}

dtrace:::END
{
	printf("%-16s %-20s %14s\n", "COMM", "CALL", "BYTES");
	printa("%-16s %-20s %@14d\n", @bytes);
}
