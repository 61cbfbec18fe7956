// SPDX-License-Identifier: MIT OR Apache-2.0
// SPDX-FileCopyrightText: The DTrace for Linux authors

/* Calls getppid() for two seconds, once the file that is named exists, from a function whose
 * name distinguishes this program from its twin. */
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#ifndef FUNCTION
#define FUNCTION inside
#endif

__attribute__((noinline)) void FUNCTION(void)
{
	long result;

	__asm__ volatile("syscall" : "=a"(result) : "0"(SYS_getppid) : "rcx", "r11", "memory");
}

int main(int argc, char **argv)
{
	struct timespec pause = { .tv_nsec = 100000000 };

	while (argc > 1 && access(argv[1], F_OK))
		nanosleep(&pause, NULL);
	for (int i = 0; i < 20; i++) {
		FUNCTION();
		nanosleep(&pause, NULL);
	}
	return 0;
}
