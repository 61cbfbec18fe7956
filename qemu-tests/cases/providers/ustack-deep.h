/* SPDX-FileCopyrightText: The DTrace for Linux authors */
/* SPDX-License-Identifier: MIT OR Apache-2.0 */

/* Functions for programs whose stacks are walked. They call one another; the innermost is
 * last(). */

#define KEPT __attribute__((noinline, noclone))

static volatile long sink;

KEPT void last(void);

KEPT void deep(int n)
{
	if (n)
		deep(n - 1);
	else
		last();
	sink++;
}
