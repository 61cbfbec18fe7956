// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

/* many-children N CALLS: creates N children that exit at once, one after the other, and then one
 * that calls sched_get_priority_max() CALLS times. */
#define _GNU_SOURCE
#include <sched.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	long n = argc == 3 ? atol(argv[1]) : 0, calls = argc == 3 ? atol(argv[2]) : 0;
	pid_t child;

	while (n-- > 0) {
		child = vfork();
		if (child < 0)
			return 1;
		if (!child)
			_exit(0);
		waitpid(child, NULL, 0);
	}
	child = fork();
	if (child < 0)
		return 1;
	while (!child && calls-- > 0)
		sched_get_priority_max(SCHED_OTHER);
	return child && waitpid(child, NULL, 0) != child;
}
