// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

/*
 * @gcc: -pthread
 *
 * sleepers-owned N: a process with N threads that each sleep in one system call, for as long as
 * standard input is open; prints "asleep" when all do. sleepers-owned call N: calls getppid() N
 * times.
 */
#include <dirent.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static int awake[2];

static void *asleep(void *number)
{
	char byte;

	return read(awake[0], &byte, 1) ? NULL : number;
}

/* Whether all threads but the first sleep, which they do only in their calls once they have
 * started. */
static int all_asleep(void)
{
	char path[64], state;
	struct dirent *entry;
	int all = 1;
	DIR *tasks = opendir("/proc/self/task");

	while (tasks && (entry = readdir(tasks))) {
		FILE *stat;

		if (atoi(entry->d_name) <= 0 || atoi(entry->d_name) == getpid())
			continue;
		snprintf(path, sizeof(path), "/proc/self/task/%d/stat", atoi(entry->d_name));
		stat = fopen(path, "r");
		all = all && stat && fscanf(stat, "%*d (%*[^)]) %c", &state) == 1 && state == 'S';
		if (stat)
			fclose(stat);
	}
	if (tasks)
		closedir(tasks);
	return tasks && all;
}

int main(int argc, char **argv)
{
	pthread_attr_t attr;
	pthread_t thread;
	char byte;
	int n;

	if (argc == 3 && !strcmp(argv[1], "call")) {
		for (n = atoi(argv[2]); n; n--)
			syscall(SYS_getppid);
		return 0;
	}
	if (argc != 2 || pipe(awake) || pthread_attr_init(&attr) || pthread_attr_setstacksize(&attr, 16384))
		return 2;
	for (n = atoi(argv[1]); n; n--) {
		if (pthread_create(&thread, &attr, asleep, NULL)) {
			perror("pthread_create");
			return 1;
		}
	}
	while (!all_asleep())
		usleep(100000);
	puts("asleep");
	fflush(stdout);
	while (read(0, &byte, 1) > 0)
		;
	return 0;
}
