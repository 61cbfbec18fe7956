/* SPDX-License-Identifier: GPL-2.0-only */
/* SPDX-FileCopyrightText: The DTrace for Linux authors */

/* What only the unit tests in the kernel need of it. */
#ifndef _DTRACE_TESTING_H
#define _DTRACE_TESTING_H

#include <linux/types.h>

u64 dtrace_test_pages(void);
void dtrace_test_page_is(u64 addr, bool there);
void dtrace_test_pages_free(u64 addr);

#endif
