// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

/*
 * A program that has no gap left below its text within reach of a jump, and a function of many instructions that are executed somewhere else where
 * a breakpoint covers them. Says that it is there, and calls it at each line that it reads.
 */

#define _GNU_SOURCE
#include <stdio.h>
#include <stdint.h>
#include <sys/mman.h>

#define REACH (1UL << 30)
#define STEP (1UL << 16)

__attribute__((noinline)) void many(void)
{
	asm volatile(".rept 500\n\tmovaps %%xmm0, %%xmm0\n\t.endr" : : : "xmm0");
}

int main(void)
{
	uint64_t at = (uint64_t)many & -STEP;

	/* What is mapped there already stays. */
	for (uint64_t end = at; at > end - REACH - STEP; at -= STEP)
		mmap((void *)at, STEP, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
	puts("there");
	fflush(stdout);
	while (getchar() != EOF)
		many();
	return 0;
}
