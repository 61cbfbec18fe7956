#!/usr/sbin/dtrace -s
/*
 * SPDX-FileCopyrightText: The DTrace for Linux authors
 * SPDX-License-Identifier: GPL-2.0-only
 *
 * The exceptions that C++ programs throw, throw again and catch, by type and by where. A type has its name behind 8 bytes; it is that of the
 * linker: `c++filt -t` reads it.
 */

#pragma D option quiet
#pragma D option zdefs

libstdcxx*:::throw,
libstdcxx*:::rethrow,
libstdcxx*:::catch
{
	@[execname, probename, copyinstr(*(uint64_t *)copyin(arg1 + 8, 8)), ucaller] = count();
}

dtrace:::END
{
	printf("%8s  %-16s %-8s %-32s %s\n", "COUNT", "COMM", "WHAT", "TYPE", "WHERE");
	printa("%@8d  %-16s %-8s %-32s %A\n", @);
}
