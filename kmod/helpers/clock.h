/* SPDX-License-Identifier: GPL-2.0-only */
/* SPDX-FileCopyrightText: The DTrace for Linux authors */

/* A wait that does not sleep; clock.c holds the body. */
#ifndef _DTRACE_CLOCK_H
#define _DTRACE_CLOCK_H

#include <linux/types.h>

void dtrace_chill(u64 ns);

#endif
