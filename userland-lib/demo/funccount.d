#!/usr/sbin/dtrace -s
/*
 * SPDX-FileCopyrightText: The DTrace for Linux authors
 * SPDX-License-Identifier: GPL-2.0-only
 *
 * Number of calls of kernel functions: funccount.d 'vfs_*'.
 */

fbt::$1:entry
{
	@calls[probefunc] = count();
}
