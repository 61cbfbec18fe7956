// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

/* The body of clock.h. */

#include <linux/processor.h>
#include <linux/timekeeping.h>

#include "clock.h"

/*
 * How often in a row the clock may show the same time before it is taken to stand still, as it does
 * while the machine goes to sleep.
 */
#define DTRACE_CHILL_STILL 100000

void dtrace_chill(u64 ns)
{
	u64 from = ktime_get_mono_fast_ns(), now = from, last;
	unsigned int still = 0;

	while (now - from < ns && still < DTRACE_CHILL_STILL) {
		cpu_relax();
		last = now;
		now = ktime_get_mono_fast_ns();
		still = now == last ? still + 1 : 0;
	}
}
