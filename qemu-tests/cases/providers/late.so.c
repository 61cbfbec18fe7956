// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

/*
 * @gcc: -shared -fPIC
 * A library that comes late: greet() is called by its constructor, by who asks for it, and by its destructor. It has a probe of
 * its own there.
 */

#include "usdt-site.h"

#define FUNCTION __attribute__((noipa, noinline))

FUNCTION long greet(long n)
{
	__asm__ volatile(SITE("late", "greeted", "-8@%0", "0") : : "r"(n));
	return n + 1;
}

/* Another name for it, which is not the one that its probes are called by. */
long salute(long n) __attribute__((weak, alias("greet")));

__attribute__((constructor)) static void begin(void)
{
	greet(100);
}

__attribute__((destructor)) static void end(void)
{
	greet(200);
}
