// SPDX-License-Identifier: MIT OR Apache-2.0
// SPDX-FileCopyrightText: The DTrace for Linux authors

/*
 * Makes a given number of system calls as fast as possible: on every CPU a process calls
 * sched_get_priority_max() N times. The arguments of all calls differ. Prints the number of
 * calls. Usage: overload N.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN), calls = argc > 1 ? atol(argv[1]) : 0;
	int status = 0;

	if (calls <= 0 || cpus <= 0) {
		fprintf(stderr, "usage: overload N\n");
		return 2;
	}
	for (long cpu = 0; cpu < cpus; cpu++) {
		cpu_set_t here;
		pid_t child = fork();

		if (child < 0) {
			perror("overload");
			return 1;
		}
		if (child > 0)
			continue;
		CPU_ZERO(&here);
		CPU_SET(cpu, &here);
		/* The binding is lost if the CPU goes offline. */
		sched_setaffinity(0, sizeof(here), &here);
		for (long n = 0; n < calls; n++)
			syscall(SYS_sched_get_priority_max, 1000 + n * cpus + cpu);
		_exit(0);
	}
	for (long cpu = 0; cpu < cpus; cpu++) {
		int one;

		if (wait(&one) < 0 || one)
			status = 1;
	}
	printf("calls %ld\n", calls * cpus);
	return status;
}
