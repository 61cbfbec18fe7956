/* SPDX-FileCopyrightText: The DTrace for Linux authors */
/* SPDX-License-Identifier: GPL-2.0-only */

/* What programs with stacks to look at have in common: functions that call one another, the last of which is last(). */

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
