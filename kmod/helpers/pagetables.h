/* SPDX-License-Identifier: GPL-2.0-only */
/* SPDX-FileCopyrightText: The DTrace for Linux authors */

/* Reading page tables in any context; pagetables.c says how. */
#ifndef _DTRACE_PAGETABLES_H
#define _DTRACE_PAGETABLES_H

#include <linux/mmzone.h>
#include <linux/pgtable.h>
#include <linux/types.h>

#include "memory.h"

/* What an address is mapped to: the flags of the entry, and the page frame. */
struct dtrace_mapping {
	unsigned long flags;
	unsigned long pfn;
};

bool dtrace_mapping_of(struct dtrace_mapping *out, const pgd_t *root, u64 addr);

/*
 * Whether a mapping leads to a device: it is not cached as memory is, or there is no memory at its
 * page frame.
 */
static inline bool dtrace_leads_to_device(const struct dtrace_mapping *mapping)
{
	return dtrace_flags_are_devices(mapping->flags) || !pfn_valid(mapping->pfn);
}

#endif
