#!/usr/sbin/dtrace -s
/*
 * SPDX-FileCopyrightText: The DTrace for Linux authors
 * SPDX-License-Identifier: GPL-2.0-only
 *
 * Files that programs open, and how often.
 */

syscall::openat:entry
{
	@opens[execname, copyinstr(arg1)] = count();
}
