/* SPDX-License-Identifier: GPL-2.0-only */
/* SPDX-FileCopyrightText: The DTrace for Linux authors */

/*
 * Memory of the current program that is not in memory yet, and is brought without waiting in a
 * fault (INV-47).
 */
#ifndef _DTRACE_FAULTS_H
#define _DTRACE_FAULTS_H

#include <linux/atomic.h>
#include <linux/types.h>

bool dtrace_bring_now(u64 addr, u64 size);
bool dtrace_bring_wait(u64 addr, u64 size);
/*
 * What memory is brought for: a clause that loads it, or the instruction itself, which may grow the
 * stack.
 */
enum dtrace_use {
	DTRACE_USE_CLAUSE,
	DTRACE_USE_LOAD,
	DTRACE_USE_STORE,
};

bool dtrace_bring_later(u64 ip, u64 addr, u64 size, u32 use);
void dtrace_brought(void);
/* Number of entries in use: tasks that wait for memory, or did so a moment ago. */
extern atomic_t dtrace_brings_taken;

#endif
