// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

/* The bodies of syscalls.h that are the same for all processors. */

#include <linux/unistd.h>
#include <trace/syscall.h>

#include "syscalls.h"

unsigned int dtrace_syscall_count(void)
{
	return NR_syscalls;
}

/*
 * Describes system call n; `table` is the address of the kernel's pointer syscalls_metadata. False:
 * there is no such call.
 */
bool dtrace_syscall_at(uintptr_t table, unsigned int n, struct dtrace_syscall *out)
{
	struct syscall_metadata **all = *(struct syscall_metadata ***)table;
	const struct syscall_metadata *meta = all ? all[n] : NULL;

	/* A call may be in the table under several numbers. */
	if (!meta || meta->syscall_nr != n)
		return false;
	out->name = meta->name;
	out->nargs = meta->nb_args;
	out->types = meta->types;
	return true;
}
