#!/usr/sbin/dtrace -s
/*
 * SPDX-FileCopyrightText: The DTrace for Linux authors
 * SPDX-License-Identifier: GPL-2.0-only
 *
 * How often functions of the kernel are called: funccount.d 'vfs_*'.
 */

fbt::$1:entry
{
	@calls[probefunc] = count();
}
