// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0
// @gcc: -O2 -g -fomit-frame-pointer -fno-optimize-sibling-calls

/*
 * Usage: ustack-inlined-work [stays]. The compiler merges three functions, the innermost of which
 * calls getppid(). `stays': the process waits for a moment, calls them again and waits again.
 */

#define _GNU_SOURCE
#include <sys/syscall.h>
#include <unistd.h>

#define INLINED static inline __attribute__((always_inline))

static volatile long sink;

INLINED void inner(long n)
{
	sink += syscall(SYS_getppid);
	sink += n;
}

INLINED void middle(long n)
{
	sink--;
	inner(n * 2);
}

INLINED void outer(long n)
{
	middle(n + 1);
	sink++;
}

__attribute__((noinline, noclone)) void run(long n)
{
	sink = 0;
	outer(n);
	sink++;
}

int main(int argc, char **argv)
{
	(void)argv;
	run(argc);
	if (argc > 1) {
		sleep(2);
		run(argc);
		sleep(2);
	}
	return 0;
}
