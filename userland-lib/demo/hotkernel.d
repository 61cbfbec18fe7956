#!/usr/sbin/dtrace -s
/*
 * SPDX-FileCopyrightText: The DTrace for Linux authors
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * The 30 kernel functions that run most often, sampled 997 times a second on every CPU.
 */

#pragma D option quiet

profile:::profile-997
/arg0/
{
	@hot[func(arg0)] = count();
}

dtrace:::END
{
	trunc(@hot, 30);
	printa("%-60a %@8d\n", @hot);
}
