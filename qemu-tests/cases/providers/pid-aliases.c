// SPDX-License-Identifier: MIT OR Apache-2.0
// SPDX-FileCopyrightText: The DTrace for Linux authors

/* A program whose function has two names: pid-aliases [FILE...] calls it ten times, or ten times for each file, once that exists. */

#include <stdio.h>
#include <unistd.h>

__attribute__((noipa)) long work(long n)
{
	return n + 1;
}

long twin(long n) __attribute__((weak, alias("work")));

static void calls(void)
{
	long total = 0;

	for (long n = 0; n < 5; n++)
		total += work(n) + twin(n);
	printf("total %ld\n", total);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	if (argc == 1)
		calls();
	for (int n = 1; n < argc; n++) {
		while (access(argv[n], F_OK))
			usleep(10000);
		calls();
	}
	return 0;
}
