#!/usr/sbin/dtrace -s
/*
 * SPDX-FileCopyrightText: The DTrace for Linux authors
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Number of times that each program opens each file by openat(2).
 */

syscall::openat:entry
{
	self->path = arg1;
}

/* Read the path when the call returns: on entry the page with the path need not be in memory. */
syscall::openat:return
/self->path/
{
	@opens[execname, copyinstr(self->path)] = count();
	self->path = 0;
}
