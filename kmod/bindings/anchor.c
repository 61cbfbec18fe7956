// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

/*
 * The one function of ours that ftrace can patch, and that nobody calls. An ftrace_ops with an empty filter traces
 * every function there is, so the filters of ours always hold this one: emptied of everything else, an ops stays
 * registered and costs nothing, where unregistering it would wait for every task to schedule.
 */

#include <linux/compiler.h>

#include "providers.h"

noinline void dtrace_anchor(void)
{
	barrier();
}
