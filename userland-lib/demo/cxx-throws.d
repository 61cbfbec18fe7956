#!/usr/sbin/dtrace -s
/*
 * SPDX-FileCopyrightText: The DTrace for Linux authors
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * C++ exceptions that are thrown, rethrown and caught, by program, type and caller. The type_info
 * has a pointer to the name of the type at offset 8. The name is mangled: `c++filt -t` decodes it.
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
