// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

/*
 * @gcc: -shared -fPIC
 * A library that is loaded late: greet() is called by its constructor, by its users, and by its
 * destructor. It contains a USDT probe.
 */

#include "usdt-site.h"

#define FUNCTION __attribute__((noipa, noinline))

FUNCTION long greet(long n)
{
	__asm__ volatile(SITE("late", "greeted", "-8@%0", "0") : : "r"(n));
	return n + 1;
}

/* Another name for it, by which its probes are not named. */
long salute(long n) __attribute__((weak, alias("greet")));

__attribute__((constructor)) static void begin(void)
{
	greet(100);
}

__attribute__((destructor)) static void end(void)
{
	greet(200);
}
