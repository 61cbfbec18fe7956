// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

/*
 * A walk of page tables in any context, without a lock.
 *
 * Interrupts are off, which delays the freeing of tables: the task that frees one waits for a grace
 * period, or for an interrupt of this CPU. But a root is freed at once, and the caller may have the
 * root of an address space that has gone, so anything may be found in its place. So each entry is
 * loaded by a load that may fault, and only from the direct map of all memory, which ends below the
 * vmalloc space: beyond it there may be devices. The result is valid only if the address space
 * still exists afterwards, which the caller must check (INV-18).
 */

#include <linux/mm.h>
#include <linux/uaccess.h>

#include "pagetables.h"

#define ENTRY(to, from) (dtrace_kernel_is_direct((u64)(from)) && !get_kernel_nofault(to, from))

/* Finds what addr is mapped to by the tables of this root; false: nothing. */
bool dtrace_mapping_of(struct dtrace_mapping *out, const pgd_t *root, u64 addr)
{
	const pgd_t *pgdp = root + pgd_index(addr);
	const p4d_t *p4dp;
	pgd_t pgd;
	p4d_t p4d;
	pud_t pud;
	pmd_t pmd;
	pte_t pte;

	if (!ENTRY(pgd, pgdp) || !pgd_present(pgd))
		return false;
	/*
	 * Without a fifth level the root itself is the p4d table, so its entry must not be looked
	 * up in our copy of the pgd.
	 */
	p4dp = pgtable_l5_enabled() ? p4d_offset(&pgd, addr) : (const p4d_t *)pgdp;
	if (!ENTRY(p4d, p4dp) || !p4d_present(p4d))
		return false;
	if (!ENTRY(pud, pud_offset(&p4d, addr)) || !pud_present(pud))
		return false;
	if (pud_leaf(pud)) {
		out->flags = dtrace_pud_flags(pud);
		out->pfn = pud_pfn(pud) + ((addr & ~PUD_MASK) >> PAGE_SHIFT);
		return true;
	}
	if (!ENTRY(pmd, pmd_offset(&pud, addr)) || !pmd_present(pmd))
		return false;
	if (pmd_leaf(pmd)) {
		out->flags = dtrace_pmd_flags(pmd);
		out->pfn = pmd_pfn(pmd) + ((addr & ~PMD_MASK) >> PAGE_SHIFT);
		return true;
	}
	if (!ENTRY(pte, (pte_t *)pmd_page_vaddr(pmd) + pte_index(addr)) || !pte_present(pte))
		return false;
	out->flags = dtrace_pte_flags(pte);
	out->pfn = pte_pfn(pte);
	return true;
}
