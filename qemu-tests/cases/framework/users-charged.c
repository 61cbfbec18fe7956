// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

/*
 * A function on each of many pages. Prints the address of the first and the number of pages;
 * after a line of input calls all of them, and prints a line.
 */

#include <stdio.h>

#define PAGES 256
#define TEXT_OF(n) #n
#define TEXT(n) TEXT_OF(n)

extern char pages[];

__asm__(".text\n"
	".p2align 12\n"
	"pages:\n"
	".rept " TEXT(PAGES) "\n"
	"push %rbp\n"
	"pop %rbp\n"
	"ret\n"
	".p2align 12\n"
	".endr\n");

int main(void)
{
	int n;

	printf("%lx %d\n", (unsigned long)pages, PAGES);
	fflush(stdout);
	getchar();
	for (n = 0; n < PAGES; n++)
		((void (*)(void))(pages + n * 4096L))();
	puts("called");
	return 0;
}
