/* SPDX-License-Identifier: GPL-2.0-only */
/* SPDX-FileCopyrightText: The DTrace for Linux authors */

/* Where the kernel maps memory and devices, and what the entries of page tables say. */
#ifndef _DTRACE_ARCH_MEMORY_H
#define _DTRACE_ARCH_MEMORY_H

#include <linux/mm.h>
#include <linux/pgtable.h>
#include <linux/types.h>
#include <asm/fixmap.h>
#include <asm/special_insns.h>

/* Whether addr is in the direct map of all memory, which lies below the vmalloc space. */
static __always_inline bool dtrace_is_direct(u64 addr)
{
	return addr - PAGE_OFFSET < VMALLOC_START - PAGE_OFFSET;
}

/* The same for an address that is not below it: what an entry of a page table leads to. */
static __always_inline bool dtrace_kernel_is_direct(u64 addr)
{
	return addr < VMALLOC_START;
}

/* The page frame of an address in the direct map. */
static __always_inline unsigned long dtrace_direct_frame(u64 addr)
{
	return (addr - PAGE_OFFSET) >> PAGE_SHIFT;
}

/* Whether a device may be mapped at addr: in the vmalloc space and in the fixed mappings. */
static __always_inline bool dtrace_maps_devices(u64 addr)
{
	return (addr >= VMALLOC_START && addr <= VMALLOC_END) || addr >= FIXADDR_TOT_START;
}

/* Whether a frame is no memory, whatever its struct page says: the display's, 640 KiB to 1 MiB. */
static __always_inline bool dtrace_is_hole(unsigned long pfn)
{
	return pfn >= 0xa0 && pfn < 0x100;
}

/* The root of the page tables that this CPU uses. */
static __always_inline const pgd_t *dtrace_root(void)
{
	return __va(read_cr3_pa());
}

/* The flags of an entry that leads to a page, of each level at which there may be one. */
static __always_inline unsigned long dtrace_pud_flags(pud_t pud)
{
	return pud_flags(pud);
}

static __always_inline unsigned long dtrace_pmd_flags(pmd_t pmd)
{
	return pmd_flags(pmd);
}

static __always_inline unsigned long dtrace_pte_flags(pte_t pte)
{
	return pte_flags(pte);
}

/* Whether the page is not cached as memory is. */
static __always_inline bool dtrace_flags_are_devices(unsigned long flags)
{
	return flags & (_PAGE_PCD | _PAGE_PWT);
}

/*
 * Whether the page is the kernel's, so that the program has no access. An entry whose access rights
 * NUMA balancing has removed is none of these.
 */
static __always_inline bool dtrace_flags_are_kernels(unsigned long flags)
{
	return (flags & _PAGE_PRESENT) && !(flags & _PAGE_USER);
}

/* Whether the mapping is a special one, whose page the kernel does not manage. */
static __always_inline bool dtrace_flags_are_special(unsigned long flags)
{
	return flags & _PAGE_SPECIAL;
}

#endif
