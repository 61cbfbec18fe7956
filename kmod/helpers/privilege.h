/* SPDX-License-Identifier: GPL-2.0-only */
/* SPDX-FileCopyrightText: The DTrace for Linux authors */

/* What the current task may do; privilege.c holds the bodies. */
#ifndef _DTRACE_PRIVILEGE_H
#define _DTRACE_PRIVILEGE_H

#include <linux/types.h>

bool dtrace_capable(int capability);
bool dtrace_may_read_kernel(void);
bool dtrace_may_write(void);

#endif
