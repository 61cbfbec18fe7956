// SPDX-License-Identifier: MIT OR Apache-2.0
// SPDX-FileCopyrightText: The DTrace for Linux authors

/*
 * Usage: ustack-astray ADDRESS. A program whose stack pointer is wrong for a while. It first
 * computes with its own stack, so that tracers learn how to walk from there, and then with the
 * stack pointer at the address. The highest word that a program can map looks like a return
 * address in never(), which is never called.
 */

#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* The ends of the mappable addresses with four and with five levels of page tables. */
static const unsigned long ends[] = { (1UL << 47) - 4096, (1UL << 56) - 4096 };

/* Counts down `turns` with the stack pointer `sp` (0: its own). */
void astray(unsigned long sp, unsigned long turns);
__asm__(".text\n.globl astray\n.type astray, @function\nastray:\n"
	"	.cfi_startproc\n"
	"	mov %rsp, %rax\n	test %rdi, %rdi\n	cmovz %rsp, %rdi\n	mov %rdi, %rsp\n"
	"1:	dec %rsi\n	jnz 1b\n"
	"	mov %rax, %rsp\n	ret\n"
	"	.cfi_endproc\n"
	".size astray, .-astray\n");

__attribute__((noinline, used)) static int never(int n)
{
	return printf("%d\n", n) + 1;
}

int main(int argc, char **argv)
{
	unsigned long sp = argc > 1 ? strtoul(argv[1], NULL, 16) : 0;
	void *caller = (char *)never + 8;

	for (int n = 0; n < 2; n++) {
		char *page = mmap((void *)(ends[n] - 4096), 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

		if (page != MAP_FAILED)
			memcpy(page + 4096 - sizeof(caller), &caller, sizeof(caller));
		else if (!n)
			perror("mmap");
	}
	for (int n = 0; n < 10; n++) {
		astray(0, 30000000);
		astray(sp, 30000000);
	}
	return 0;
}
