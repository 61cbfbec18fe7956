// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

/* Makes a recognizable call, two functions deep, and exits, or executes what its arguments say. */
#include <sys/syscall.h>
#include <unistd.h>

static volatile int done;

static __attribute__((noinline)) void inner(void)
{
	syscall(SYS_sched_get_priority_max, 77);
	done = 1;
}

static __attribute__((noinline)) void outer(void)
{
	inner();
	done = 2;
}

int main(int argc, char **argv)
{
	outer();
	if (argc > 1)
		execvp(argv[1], argv + 1);
	return done != 2;
}
