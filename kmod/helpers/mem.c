// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

/* The bodies of mem.h. */

#include <linux/mm.h>
#include <linux/sizes.h>
#include <linux/slab.h>

#include "mem.h"

/*
 * Allocates zeroed memory for a consumer, which may request buffers of any size. Refuses at once
 * more than a quarter of the available memory, and what would leave the machine less than the
 * reserve that it needs to go on, because a tracer must not drive reclaim to its end (INV-29). The
 * measure is available memory, not all memory, because a machine may have promised nearly all of it
 * to one program. No process is killed for the allocation.
 */
void *dtrace_mem_alloc(size_t size)
{
	long reserve = min_t(long, totalram_pages() / 16, SZ_64M >> PAGE_SHIFT);
	long available = si_mem_available();
	size_t pages = size >> PAGE_SHIFT;

	if (pages > max(available, 0L) / 4 || available - (long)pages < reserve)
		return NULL;
	return kvzalloc(size, GFP_KERNEL_ACCOUNT | __GFP_RETRY_MAYFAIL | __GFP_NOWARN);
}

unsigned int dtrace_machine_mib(void)
{
	return totalram_pages() >> (20 - PAGE_SHIFT);
}
