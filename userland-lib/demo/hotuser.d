#!/usr/sbin/dtrace -s
/*
 * SPDX-FileCopyrightText: The DTrace for Linux authors
 * SPDX-License-Identifier: GPL-2.0-only
 *
 * The functions that one process is in (-p or -c), sampled 997 times a second.
 */

#pragma D option quiet

profile:::profile-997
/pid == $target && arg1/
{
	@hot[ufunc(arg1)] = count();
}

dtrace:::END
{
	trunc(@hot, 30);
	printa("%-60A %@8d\n", @hot);
}
