#!/usr/sbin/dtrace -s
/*
 * SPDX-FileCopyrightText: The DTrace for Linux authors
 * SPDX-License-Identifier: GPL-2.0-only
 *
 * Files that programs open, and how often.
 */

syscall::openat:entry
{
	self->path = arg1;
}

/* When the call begins, the page that the path is in need not be there. */
syscall::openat:return
/self->path/
{
	@opens[execname, copyinstr(self->path)] = count();
	self->path = 0;
}
