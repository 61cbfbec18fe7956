// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

/* What only the unit tests in the kernel need of it. */

#include <linux/kconfig.h>

#if IS_ENABLED(CONFIG_KUNIT)

#include <linux/gfp.h>
#include <linux/mm.h>
#include <linux/page-flags.h>

#include "testing.h"

/* Two pages of the direct map, 0 if there are none. */
u64 dtrace_test_pages(void)
{
	return __get_free_pages(GFP_KERNEL | __GFP_ZERO, 1);
}

/* Has a page taken for one that the machine does not have at the moment, or again for one that it has. */
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

#endif
