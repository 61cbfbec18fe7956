/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* SPDX-FileCopyrightText: The DTrace for Linux authors */

/* What programs of every kind do the same way, for the case pid-kinds. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#define FUNCTION __attribute__((noipa, noinline))

FUNCTION long sum8(long a, long b, long c, long d, long e, long f, long g, long h)
{
	return a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + 8 * h;
}

FUNCTION void work(void)
{
	printf("sum %ld\n", sum8(1, 2, 3, 4, 5, 6, 7, -8));
}
