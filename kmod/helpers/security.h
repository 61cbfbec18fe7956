/* SPDX-License-Identifier: GPL-2.0-only */
/* SPDX-FileCopyrightText: The DTrace for Linux authors */

/* What the security modules allow the current task. */
#ifndef _DTRACE_SECURITY_H
#define _DTRACE_SECURITY_H

#include <linux/types.h>

bool dtrace_security_sees(uintptr_t perf_event_open);
bool dtrace_security_sees_kernel(uintptr_t perf_event_open);
bool dtrace_security_reads(uintptr_t bpf);

#endif
