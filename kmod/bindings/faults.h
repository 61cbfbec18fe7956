/* SPDX-License-Identifier: GPL-2.0-only */
/* SPDX-FileCopyrightText: The DTrace for Linux authors */

/* Memory of the current program that is not there yet, and is brought without a fault. */
#ifndef _DTRACE_FAULTS_H
#define _DTRACE_FAULTS_H

#include <linux/types.h>

bool dtrace_bring_now(u64 addr, u64 size);
bool dtrace_bring_wait(u64 addr, u64 size);
bool dtrace_bring_later(u64 ip, u64 addr, u64 size);
void dtrace_brought(void);

#endif
