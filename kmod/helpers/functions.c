// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

/* The bodies of functions.h. */

#include <linux/ftrace.h>
#include <linux/module.h>
#include <linux/mutex.h>

#include "functions.h"
#include "symbols.h"

/*
 * Calls each() for every place that ftrace can patch now (in one module, if `only` is given), until
 * it returns a value other than 0. `start`, `next` and `record` are the addresses of
 * ftrace_rec_iter_start(), _next() and _record(), which are not exported; `lock` is ftrace_lock,
 * which protects their single iterator. May sleep.
 */
int dtrace_each_traceable(uintptr_t start, uintptr_t next, uintptr_t record, struct mutex *lock,
			  struct module *only, int (*each)(void *data, uintptr_t ip), void *data)
{
	uintptr_t iter;
	int ret = 0;

	mutex_lock(lock);
	for (iter = dtrace_call(start, 0, 0, 0, 0, 0); iter && !ret; iter = dtrace_call(next, iter, 0, 0, 0, 0)) {
		struct dyn_ftrace *rec = (void *)dtrace_call(record, iter, 0, 0, 0, 0);

		if (rec->flags & FTRACE_FL_DISABLED)
			continue;
		if (!only || within_module(rec->ip, only))
			ret = each(data, rec->ip);
	}
	mutex_unlock(lock);
	return ret;
}

/*
 * How far behind a function's first byte ftrace's place may be. A place farther behind belongs to a
 * function that the linker dropped in favour of another one.
 */
uintptr_t dtrace_traceable_offset(void)
{
#ifdef FTRACE_MCOUNT_MAX_OFFSET
	return FTRACE_MCOUNT_MAX_OFFSET;
#else
	return 0;
#endif
}
