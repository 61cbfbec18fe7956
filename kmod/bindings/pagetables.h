/* SPDX-License-Identifier: GPL-2.0-only */
/* SPDX-FileCopyrightText: The DTrace for Linux authors */

/* Page tables, as they may be read in any context; pagetables.c says why. */
#ifndef _DTRACE_PAGETABLES_H
#define _DTRACE_PAGETABLES_H

#include <linux/mmzone.h>
#include <linux/pgtable.h>
#include <linux/types.h>

/* What an address leads to: the flags of the entry that maps it, and the page. */
struct dtrace_mapping {
	unsigned long flags;
	unsigned long pfn;
};

bool dtrace_mapping_of(struct dtrace_mapping *out, const pgd_t *root, u64 addr);

/* A mapping that is not cached as memory is, or leads to where there is no memory, is a device's. */
static inline bool dtrace_leads_to_device(const struct dtrace_mapping *mapping)
{
	return (mapping->flags & (_PAGE_PCD | _PAGE_PWT)) || !pfn_valid(mapping->pfn);
}

#endif
