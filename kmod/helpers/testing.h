/* SPDX-License-Identifier: GPL-2.0-only */
/* SPDX-FileCopyrightText: The DTrace for Linux authors */

/* Helpers for the KUnit tests only. */
#ifndef _DTRACE_TESTING_H
#define _DTRACE_TESTING_H

#include <linux/types.h>

u64 dtrace_test_pages(void);
void dtrace_test_page_is(u64 addr, bool there);
void dtrace_test_pages_free(u64 addr);
bool dtrace_test_interrupts(void);

#endif
