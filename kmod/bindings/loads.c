// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

/*
 * Loads of any kernel address, in any context. What is not mapped fails by the exception table; what is mapped and no
 * memory must fail before it is touched, since a device may take a read for an order.
 *
 * The kernel maps devices in two places, the vmalloc space and the fixed mappings; what lies elsewhere costs a
 * comparison. There the page tables are asked, by the CPU's own root, as the kernel does when it reports a fault. Pages of memory that
 * a driver has mapped without caching are refused with devices.
 *
 * A mapping that is made at the very moment of the load is not seen. Nobody has its address yet.
 */

#include <linux/mm.h>
#include <linux/uaccess.h>
#include <asm/fixmap.h>
#include <asm/special_insns.h>

#include "loads.h"
#include "pagetables.h"

static bool dtrace_maps_devices(u64 addr)
{
	return (addr >= VMALLOC_START && addr <= VMALLOC_END) || addr >= FIXADDR_TOT_START;
}

/* Whether there is a device at addr. What is not mapped is none. */
static noinline bool dtrace_is_device(u64 addr)
{
	struct dtrace_mapping mapping;

	return dtrace_mapping_of(&mapping, __va(read_cr3_pa()), addr) && dtrace_leads_to_device(&mapping);
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
