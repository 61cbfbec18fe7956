// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

/*
 * Loads from any kernel address, in any context. A load from an unmapped address fails by the
 * exception table. A load from an address that is mapped but is no memory must fail before it is
 * made, because a device may take a read for a command.
 *
 * The kernel maps devices in the vmalloc space and in the fixed mappings. There the page tables are
 * consulted, by the CPU's own root, as the kernel does when it reports a fault. Memory that a
 * driver has mapped uncached is refused like a device.
 *
 * The direct map also contains devices whose memory others are to reach, such as a disk's buffer,
 * and memory that the machine does not have at the moment: a hypervisor may end a machine that
 * reads what it has taken back or not yet given. Such memory is in no section that is online, or
 * its struct page is of a device zone or says so; /proc/kcore checks the same.
 *
 * A mapping that is made during the load is not seen. Nobody has its address yet.
 */

#include <linux/efi.h>
#include <linux/mm.h>
#include <linux/nospec.h>
#include <linux/uaccess.h>

#include "loads.h"
#include "memory.h"
#include "pagetables.h"

/* Whether a device is mapped at addr. An unmapped address is none. */
static noinline bool dtrace_is_device(u64 addr)
{
	struct dtrace_mapping mapping;

	return dtrace_mapping_of(&mapping, dtrace_root(), addr) && dtrace_leads_to_device(&mapping);
}

/* Whether a page is of this type; also true if its struct page cannot be read. */
static bool dtrace_page_is(const struct page *page, u8 type)
{
	unsigned int word;

	__get_kernel_nofault(&word, &page->page_type, unsigned int, unknown);
	return word >> 24 == type;
unknown:
	return true;
}

/*
 * A machine whose host is not trusted accepts its memory in large pieces, when it needs them. The
 * first page of a piece that is not accepted yet says so.
 */
static noinline bool dtrace_is_unaccepted(unsigned long pfn)
{
	return dtrace_page_is(pfn_to_page(round_down(pfn, MAX_ORDER_NR_PAGES)), PGTY_unaccepted);
}

static bool dtrace_accepts_memory(void)
{
	return IS_ENABLED(CONFIG_UNACCEPTED_MEMORY) && efi.unaccepted != EFI_INVALID_TABLE_ADDR;
}

/* Whether there is a struct page for this frame, and the kernel uses it. */
static bool dtrace_is_online(unsigned long pfn)
{
	return pfn_to_section_nr(pfn) < NR_MEM_SECTIONS && online_section_nr(pfn_to_section_nr(pfn)) &&
	       !dtrace_is_hole(pfn);
}

#ifdef CONFIG_MEMORY_FAILURE
#define DTRACE_POISONED BIT(PG_hwpoison)
#else
#define DTRACE_POISONED 0
#endif

/* Whether addr in the direct map is memory that the kernel may read. */
static bool dtrace_is_memory(u64 addr)
{
	unsigned long pfn = dtrace_direct_frame(addr);
	const struct page *page = pfn_to_page(pfn);
	memdesc_flags_t flags;

	if (!dtrace_is_online(pfn))
		return false;
	__get_kernel_nofault(&flags.f, &page->flags.f, unsigned long, none);
	if (memdesc_is_zone_device(flags) || flags.f & DTRACE_POISONED || dtrace_page_is(page, PGTY_offline))
		return false;
	return !dtrace_accepts_memory() || !dtrace_is_unaccepted(pfn);
none:
	return false;
}

/* Whether these bytes, all in one page, must not be read. */
static bool dtrace_is_no_memory(u64 addr)
{
	if (dtrace_is_direct(addr))
		return !dtrace_is_memory(addr);
	return unlikely(dtrace_maps_devices(addr)) && dtrace_is_device(addr);
}

/* The same for bytes of several pages. */
static bool dtrace_touches_device(u64 addr, size_t size)
{
	u64 page = addr & PAGE_MASK, last = (addr + size - 1) & PAGE_MASK;

	if (!size)
		return false;
	for (; page != last; page += PAGE_SIZE)
		if (dtrace_is_no_memory(page))
			return true;
	return dtrace_is_no_memory(page);
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
 * Copies a string of at most `size` bytes without its NUL. Returns its length, or a negative errno.
 * Reads aligned words, which never reach into a page that the string does not reach.
 */
long dtrace_load_str(char *out, u64 addr, size_t size)
{
	size_t done = 0;

	while (done < size) {
		u64 at = addr + done;
		size_t n = min_t(size_t, 8 - (at & 7), size - done);
		char word[8];
		size_t i;

		/* Check each page once. */
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

void dtrace_settle(void)
{
	barrier_nospec();
}
