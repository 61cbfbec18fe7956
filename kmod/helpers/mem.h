/* SPDX-License-Identifier: GPL-2.0-only */
/* SPDX-FileCopyrightText: The DTrace for Linux authors */

/* The engine's memory, and the size of the machine's; mem.c holds the bodies. */
#ifndef _DTRACE_MEM_H
#define _DTRACE_MEM_H

#include <linux/types.h>

void *dtrace_mem_alloc(size_t size);
unsigned int dtrace_machine_mib(void);

#endif
