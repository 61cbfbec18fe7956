// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

/*
 * The only function of this module that ftrace can patch. Nothing calls it.
 *
 * An ftrace_ops with an empty filter traces every function of the kernel, so our filters always
 * contain this one. An ops whose filter contains nothing else stays registered and costs nothing
 * (INV-37). Unregistering it instead would wait until every task has scheduled.
 */

#include <linux/compiler.h>

#include "functions.h"

noinline void dtrace_anchor(void)
{
	barrier();
}
