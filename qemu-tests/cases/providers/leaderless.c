// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

/*
 * A process whose first thread has ended. The second one says so, waits for SIGUSR1, calls work()
 * and prints the sum of what it returns.
 */

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "wait-word.h"

__attribute__((noinline)) long work(long n)
{
	__asm__ volatile("" : "+r"(n));
	return n + 1;
}

/* Whether the process' first thread is a zombie, from the third word of its stat file. */
static bool is_alone(void)
{
	char text[256];
	FILE *file;

	snprintf(text, sizeof(text), "/proc/self/task/%d/stat", (int)getpid());
	file = fopen(text, "r");
	if (!file || !fgets(text, sizeof(text), file))
		return true;
	fclose(file);
	return strstr(text, ") Z ") != NULL;
}

static void *second(void *unused)
{
	long sum = 0;

	while (!is_alone())
		usleep(1000);
	wait_for_signal();
	for (long n = 0; n < 100; n++)
		sum += work(n);
	printf("sum %ld\n", sum);
	fflush(stdout);
	return unused;
}

int main(void)
{
	pthread_t id;

	block_signal();
	if (pthread_create(&id, NULL, second, NULL))
		return 1;
	pthread_exit(NULL);
}
