// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

/* Calls getppid() from a function whose name tells this program from its twin, for two seconds. */
#include <sys/syscall.h>
#include <time.h>

#ifndef FUNCTION
#define FUNCTION inside
#endif

__attribute__((noinline)) void FUNCTION(void)
{
	long result;

	__asm__ volatile("syscall" : "=a"(result) : "0"(SYS_getppid) : "rcx", "r11", "memory");
}

int main(void)
{
	struct timespec pause = { .tv_nsec = 100000000 };

	for (int i = 0; i < 20; i++) {
		FUNCTION();
		nanosleep(&pause, NULL);
	}
	return 0;
}
