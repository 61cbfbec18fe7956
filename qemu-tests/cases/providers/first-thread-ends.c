// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

// Calls getppid(), lets its first thread exit, and calls it again in the second.

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

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

static void *second(void *unused)
{
	while (!dead())
		usleep(1000);
	getppid();
	return unused;
}

int main(void)
{
	pthread_t thread;

	getppid();
	if (pthread_create(&thread, NULL, second, NULL))
		return 1;
	pthread_exit(NULL);
}
