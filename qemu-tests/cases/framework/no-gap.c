// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

/*
 * A program without free address space within reach of a jump below its text, and with a
 * function of many instructions that are executed out of line if a breakpoint covers them.
 * Prints a line when it is ready, and calls the function for each character that it reads.
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

	/* Existing mappings stay. */
	for (uint64_t end = at; at > end - REACH - STEP; at -= STEP)
		mmap((void *)at, STEP, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
	puts("there");
	fflush(stdout);
	while (getchar() != EOF)
		many();
	return 0;
}
