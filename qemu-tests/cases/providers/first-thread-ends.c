// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

// Calls getppid(), lets its first thread exit, and calls it again in the second. With the word
// `wait` the second thread then says so, waits for SIGUSR1, calls work() and prints the sum of what
// it returns.

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "wait-word.h"

__attribute__((noinline)) long work(long n)
{
	__asm__ volatile("" : "+r"(n));
	return n + 1;
}

// Whether the process' first thread is a zombie, from the third word of its stat file.
static int dead(void)
{
	char text[256];
	FILE *file;

	snprintf(text, sizeof text, "/proc/self/task/%d/stat", (int)getpid());
	file = fopen(text, "r");
	if (!file || !fgets(text, sizeof text, file))
		return 1;
	fclose(file);
	return strstr(text, ") Z ") != NULL;
}

static void *second(void *word)
{
	long sum = 0;

	while (!dead())
		usleep(1000);
	getppid();
	if (!word)
		return NULL;
	wait_for_signal();
	for (long n = 0; n < 100; n++)
		sum += work(n);
	printf("sum %ld\n", sum);
	fflush(stdout);
	return NULL;
}

int main(int argc, char **argv)
{
	char *word = argc > 1 && !strcmp(argv[1], "wait") ? argv[1] : NULL;
	pthread_t thread;

	getppid();
	// Both threads: the signal may come as soon as the second has said that it waits.
	if (word)
		block_signal();
	if (pthread_create(&thread, NULL, second, word))
		return 1;
	pthread_exit(NULL);
}
