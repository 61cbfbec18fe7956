#!/usr/sbin/dtrace -s
/*
 * SPDX-FileCopyrightText: The DTrace for Linux authors
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Signals that are generated, by the program that was running and signal number.
 */

#pragma D option quiet

sdt:::signal_generate
{
	@signals[execname, (int)arg0] = count();
}

dtrace:::END
{
	printf("%-16s %6s %8s\n", "COMM", "SIGNAL", "COUNT");
	printa("%-16s %6d %@8d\n", @signals);
}
