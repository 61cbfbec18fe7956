/* SPDX-License-Identifier: GPL-2.0-only */
/* SPDX-FileCopyrightText: The DTrace for Linux authors */

/* The kernel's system calls; syscalls.c and arch/ hold the bodies. */
#ifndef _DTRACE_SYSCALLS_H
#define _DTRACE_SYSCALLS_H

#include <linux/types.h>

struct dtrace_syscall {
	const char *name;
	unsigned int nargs;
	const char **types;
};

unsigned int dtrace_syscall_count(void);
bool dtrace_syscall_at(uintptr_t table, unsigned int n, struct dtrace_syscall *out);

/* The functions of 32-bit programs' system calls. */
unsigned int dtrace_compat_count(void);
const char *dtrace_compat_at(unsigned int n);
bool dtrace_compat_current(void);

#endif
