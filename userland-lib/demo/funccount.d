#!/usr/sbin/dtrace -s
/*
 * SPDX-FileCopyrightText: The DTrace for Linux authors
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Number of calls of kernel functions: funccount.d 'vfs_*'.
 */

fbt::$1:entry
{
	@calls[probefunc] = count();
}
