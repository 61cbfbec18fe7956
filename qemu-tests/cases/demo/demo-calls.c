// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

/*
 * A program whose calls and memory allocations are known to the case.
 */

#include <stdlib.h>

#define FUNCTION __attribute__((noipa, noinline))

FUNCTION int leaf(int n)
{
	for (volatile int i = 0; i < 1000; i++)
		;
	return n + 1;
}

FUNCTION int middle(int n)
{
	int sum = 0;

	while (n-- > 0)
		sum += leaf(n);
	return sum;
}

FUNCTION int deep(int n)
{
	return n ? deep(n - 1) + 1 : 0;
}

FUNCTION void gives_back(void)
{
	for (int i = 0; i < 10; i++) {
		char *volatile memory = malloc(100);

		free(memory);
	}
}

FUNCTION void keeps(void)
{
	static void *volatile kept[8];

	for (int i = 0; i < 3; i++)
		kept[i] = malloc(1000);
	kept[3] = calloc(5, 400);
	/* Grow two of them, and allocate one from NULL. */
	kept[1] = realloc(kept[1], 5000);
	kept[3] = realloc(kept[3], 6000);
	kept[4] = realloc(NULL, 70);
	free(kept[2]);
}

int main(void)
{
	int sum = 0;

	for (int i = 0; i < 4; i++)
		sum += middle(i);
	sum += deep(5);
	gives_back();
	keeps();
	return sum != 14 + 1;
}
