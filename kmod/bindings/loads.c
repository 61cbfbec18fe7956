// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

/*
 * Loads of any kernel address, in any context. What is not mapped fails by the exception table; what is mapped and no
 * memory must fail before it is touched, since a device may take a read for an order.
 *
 * The kernel maps devices in two places, the vmalloc space and the fixed mappings; what lies elsewhere costs a
 * comparison. There the page tables are asked, by the CPU's own root, as the kernel does when it reports a fault: no lock
 * is needed, for a table that is being freed is still memory, and is read as carefully as everything else. A
 * mapping that is not cached as memory is, or leads to where there is no memory, is a device's. Pages of memory that
 * a driver has mapped without caching are refused with it.
 *
 * A mapping that is made at the very moment of the load is not seen. Nobody has its address yet.
 */

#include <linux/mm.h>
#include <linux/mmzone.h>
#include <linux/pgtable.h>
#include <linux/uaccess.h>
#include <asm/fixmap.h>
#include <asm/special_insns.h>

#include "loads.h"

static bool dtrace_maps_devices(u64 addr)
{
	return (addr >= VMALLOC_START && addr <= VMALLOC_END) || addr >= FIXADDR_TOT_START;
}

static bool dtrace_leads_to_device(unsigned long flags, unsigned long pfn)
{
	return (flags & (_PAGE_PCD | _PAGE_PWT)) || !pfn_valid(pfn);
}

/* Whether there is a device at addr. What is not mapped is none. */
static noinline bool dtrace_is_device(u64 addr)
{
	pgd_t pgd, *pgdp = (pgd_t *)__va(read_cr3_pa()) + pgd_index(addr);
	p4d_t p4d, *p4dp;
	pud_t pud, *pudp;
	pmd_t pmd, *pmdp;
	pte_t pte;

	if (get_kernel_nofault(pgd, pgdp) || !pgd_present(pgd))
		return false;
	p4dp = p4d_offset(&pgd, addr);
	if (!pgtable_l5_enabled())
		p4dp = (p4d_t *)pgdp;
	if (get_kernel_nofault(p4d, p4dp) || !p4d_present(p4d))
		return false;
	pudp = pud_offset(&p4d, addr);
	if (get_kernel_nofault(pud, pudp) || !pud_present(pud))
		return false;
	if (pud_leaf(pud))
		return dtrace_leads_to_device(pud_flags(pud), pud_pfn(pud));
	pmdp = pmd_offset(&pud, addr);
	if (get_kernel_nofault(pmd, pmdp) || !pmd_present(pmd))
		return false;
	if (pmd_leaf(pmd))
		return dtrace_leads_to_device(pmd_flags(pmd), pmd_pfn(pmd));
	if (get_kernel_nofault(pte, (pte_t *)pmd_page_vaddr(pmd) + pte_index(addr)) || !pte_present(pte))
		return false;
	return dtrace_leads_to_device(pte_flags(pte), pte_pfn(pte));
}

/* Whether a byte of these is a device's. */
static bool dtrace_touches_device(u64 addr, size_t size)
{
	u64 page;

	if (likely(!dtrace_maps_devices(addr) && !dtrace_maps_devices(addr + size - 1)) || !size)
		return false;
	for (page = addr & PAGE_MASK; page - (addr & PAGE_MASK) < (addr & ~PAGE_MASK) + size; page += PAGE_SIZE)
		if (dtrace_is_device(page))
			return true;
	return false;
}

int dtrace_load(void *out, u64 addr, size_t size)
{
	if (dtrace_touches_device(addr, size))
		return -EFAULT;
	return copy_from_kernel_nofault(out, (void *)addr, size);
}

int dtrace_load_u64(u64 *out, u64 addr)
{
	return dtrace_load(out, addr, sizeof(*out));
}

/*
 * Copies a string of at most size bytes without its NUL and returns its length, or a negative errno. Reads by aligned
 * words, which never cross into a page that the string does not reach.
 */
long dtrace_load_str(char *out, u64 addr, size_t size)
{
	size_t done = 0;

	while (done < size) {
		u64 at = addr + done;
		size_t n = min_t(size_t, 8 - (at & 7), size - done);
		char word[8];
		size_t i;

		/* Each page once. */
		if ((!done || !(at & ~PAGE_MASK)) && dtrace_touches_device(at, n))
			return -EFAULT;
		if (copy_from_kernel_nofault(word, (void *)at, n))
			return -EFAULT;
		for (i = 0; i < n; i++) {
			if (!word[i])
				return done + i;
			out[done + i] = word[i];
		}
		done += n;
	}
	return done;
}
