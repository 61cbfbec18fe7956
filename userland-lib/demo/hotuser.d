#!/usr/sbin/dtrace -s
/*
 * SPDX-FileCopyrightText: The DTrace for Linux authors
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * The 30 functions of a process (-p or -c) that run most often, sampled 997 times a second.
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
