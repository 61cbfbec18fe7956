// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

/* Accesses to a program's memory by instructions with a lock prefix. */

#include <linux/mm.h>
#include <linux/uaccess.h>
#include <asm/asm.h>

#include "user.h"

#define DTRACE_SWAP(type)                                                                          \
	({                                                                                         \
		type was = old;                                                                    \
		unsafe_try_cmpxchg_user((type __user *)addr, &was, (type)value, fault);            \
	})

int dtrace_user_swap(u64 addr, u32 size, u64 old, u64 value)
{
	int result = -EFAULT;

	pagefault_disable();
	if (!user_write_access_begin((void __user *)addr, size))
		goto out;
	if (likely(size == 8))
		result = DTRACE_SWAP(u64);
	else if (size == 4)
		result = DTRACE_SWAP(u32);
	else if (size == 2)
		result = DTRACE_SWAP(u16);
	else
		result = DTRACE_SWAP(u8);
fault:
	user_write_access_end();
out:
	pagefault_enable();
	return result;
}

/*
 * A write that changes nothing, whatever other tasks write there meanwhile. One byte never lies on
 * two cache lines.
 */
bool dtrace_user_touch(u64 addr)
{
	if (!user_write_access_begin((void __user *)addr, 1))
		return false;
	asm goto("1:	lock orb $0, %0\n" _ASM_EXTABLE_UA(1b, %l1)
		 : : "m"(*(u8 __user *)addr) : "memory", "cc" : fault);
	user_write_access_end();
	return true;
fault:
	user_write_access_end();
	return false;
}
