// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

/*
 * The bodies of user.h that are the same for all processors. The memory is that of the current
 * task, and an access fails where it would fault.
 */

#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/string.h>
#include <linux/uaccess.h>

#include "percpu.h"
#include "user.h"

/* Whether the current task has user addresses: it is a task of user space. */
bool dtrace_user_ok(void)
{
	return current->mm && !(current->flags & PF_KTHREAD);
}

/*
 * Whether user addresses can be stored to. Unlike the nofault load, the nofault store does not
 * check whether an NMI has interrupted a switch between two address spaces.
 */
bool dtrace_user_store_ok(void)
{
	return !dtrace_in_nmi() && dtrace_user_ok();
}

long dtrace_user_load_str(char *out, u64 addr, size_t size)
{
	size_t done = 0;

	if (!dtrace_user_ok())
		return -EFAULT;
	/*
	 * By aligned words, so that no load reaches into a page that the string does not reach.
	 * copy_from_user_nofault() checks whether the CPU is between two address spaces.
	 */
	while (done < size) {
		size_t word = sizeof(u64) - ((addr + done) & (sizeof(u64) - 1));
		size_t n = min(word, size - done);
		char *end;

		if (copy_from_user_nofault(out + done, (const void __user *)(addr + done), n))
			return -EFAULT;
		end = memchr(out + done, 0, n);
		if (end)
			return end - out;
		done += n;
	}
	return done;
}

#define DTRACE_GET(type)                                                       \
	({                                                                     \
		type word;                                                     \
		unsafe_get_user(word, (type __user *)addr, fault);             \
		*value = word;                                                 \
	})

static __always_inline int dtrace_get(u64 addr, u32 size, u64 *value)
{
	int error = -EFAULT;

	pagefault_disable();
	if (!user_read_access_begin((void __user *)addr, size))
		goto out;
	if (likely(size == 8))
		DTRACE_GET(u64);
	else if (size == 4)
		DTRACE_GET(u32);
	else if (size == 2)
		DTRACE_GET(u16);
	else
		DTRACE_GET(u8);
	error = 0;
fault:
	user_read_access_end();
out:
	pagefault_enable();
	return error;
}

int dtrace_user_get(u64 addr, u32 size, u64 *value)
{
	return dtrace_get(addr, size, value);
}

int dtrace_user_get_word(u64 addr, u64 *value)
{
	return dtrace_get(addr, sizeof(*value), value);
}

static __always_inline int dtrace_put(u64 addr, u32 size, u64 value)
{
	int error = -EFAULT;

	pagefault_disable();
	if (!user_write_access_begin((void __user *)addr, size))
		goto out;
	if (likely(size == 8))
		unsafe_put_user(value, (u64 __user *)addr, fault);
	else if (size == 4)
		unsafe_put_user(value, (u32 __user *)addr, fault);
	else if (size == 2)
		unsafe_put_user(value, (u16 __user *)addr, fault);
	else
		unsafe_put_user(value, (u8 __user *)addr, fault);
	error = 0;
fault:
	user_write_access_end();
out:
	pagefault_enable();
	return error;
}

int dtrace_user_put(u64 addr, u32 size, u64 value)
{
	return dtrace_put(addr, size, value);
}

int dtrace_user_put_word(u64 addr, u64 value)
{
	return dtrace_put(addr, sizeof(value), value);
}

/*
 * Looks the page up without touching it, because a device may be there, for which a write is a
 * command. A device's page counts as not writable.
 */
bool dtrace_user_writable(u64 addr)
{
	struct page *page;

	if (get_user_pages_fast_only(addr & PAGE_MASK, 1, FOLL_WRITE, &page) != 1)
		return false;
	put_page(page);
	return true;
}
