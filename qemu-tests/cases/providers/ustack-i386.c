// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

/*
 * @gcc: -O2 -m32 -nostdlib -static -fno-pie -no-pie -fno-stack-protector -fcf-protection=none -fomit-frame-pointer -fno-optimize-sibling-calls
 * A 32-bit program without a C library. Its functions have no frame pointers, except one that
 * aligns its frame.
 */

#include "ustack-deep.h"

KEPT int call(int number, int arg)
{
	int value;

	__asm__ volatile("int $0x80" : "=a"(value) : "a"(number), "b"(arg) : "memory");
	return value;
}

KEPT void last(void)
{
	/* getppid() */
	sink += call(64, 0);
}

KEPT void aligns(int n)
{
	volatile char wide[64] __attribute__((aligned(64)));

	wide[n] = n;
	deep(n);
	sink += wide[n];
}

KEPT void many(int a, int b, int c, int d, int e, int f, int g)
{
	aligns(3);
	sink += a + b + c + d + e + f + g;
}

void _start(void)
{
	many(1, 2, 3, 4, 5, 6, 7);
	/* exit() */
	call(1, sink == 42);
	for (;;)
		;
}
