#!/usr/sbin/dtrace -s
/*
 * SPDX-FileCopyrightText: The DTrace for Linux authors
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * fdspread.d: the file descriptors that a command's calls use.
 */

#pragma D option quiet

syscall::read:entry,
syscall::write:entry,
syscall::close:entry,
syscall::lseek:entry
/pid == $target && (int)arg0 >= 0/
{
	@[probefunc] = lquantize(arg0, 0, 16, 1);
	(int)arg0 > 2 ? @own[probefunc] = count() : 1;
}

dtrace:::END
{
	printa("%s: %@d\n", @own);
}
