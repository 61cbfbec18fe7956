// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

/* Helpers for the KUnit tests only. */

#include <linux/kconfig.h>

#if IS_ENABLED(CONFIG_KUNIT)

#include <linux/gfp.h>
#include <linux/irqflags.h>
#include <linux/mm.h>
#include <linux/page-flags.h>

#include "testing.h"

/* Allocates two pages of the direct map; 0: there is no memory. */
u64 dtrace_test_pages(void)
{
	return __get_free_pages(GFP_KERNEL | __GFP_ZERO, 1);
}

/*
 * Marks a page as offline, that is, as one that the machine does not have at the moment; or as
 * present again.
 */
void dtrace_test_page_is(u64 addr, bool there)
{
	struct page *page = virt_to_page((void *)addr);

	if (there)
		__ClearPageOffline(page);
	else
		__SetPageOffline(page);
}

void dtrace_test_pages_free(u64 addr)
{
	free_pages(addr, 1);
}

/* Whether interrupts are on. */
bool dtrace_test_interrupts(void)
{
	return !irqs_disabled();
}

#endif
