// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

/* The bodies of symbols.h. */

#include <linux/kprobes.h>
#include <linux/types.h>

#include "symbols.h"

/*
 * Finds the address of a function by a kprobe, which is the only exported way if the function is
 * not exported. A disabled kprobe leaves the code alone, so there is nothing to undo for which
 * memory could be short.
 */
static uintptr_t dtrace_kprobe_address(const char *name)
{
	struct kprobe kp = { .symbol_name = name, .flags = KPROBE_FLAG_DISABLED };
	uintptr_t addr;

	if (register_kprobe(&kp))
		return 0;
	addr = (uintptr_t)kp.addr;
	unregister_kprobe(&kp);
	return addr;
}

/*
 * Finds the address of a kernel symbol, exported or not; 0: there is no such symbol. False: nothing
 * can be looked up. May sleep.
 */
bool dtrace_symbol(const char *name, uintptr_t *address)
{
	/*
	 * kallsyms_lookup_name(), which is not exported either. Placing a kprobe costs far more
	 * than a call of this function.
	 */
	static uintptr_t by_name;
	uintptr_t at = READ_ONCE(by_name);

	if (!at) {
		at = dtrace_kprobe_address("kallsyms_lookup_name");
		if (!at)
			return false;
		WRITE_ONCE(by_name, at);
	}
	*address = dtrace_call(at, (uintptr_t)name, 0, 0, 0, 0);
	return true;
}
