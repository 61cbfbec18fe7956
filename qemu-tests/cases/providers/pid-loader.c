// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

/*
 * Opens and closes the library late.so in its own folder, and creates children: pid-loader
 * [WORD...].
 */

#include <dlfcn.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "wait-word.h"

static long call(void *library)
{
	long (*greet)(long) = (long (*)(long))dlsym(library, "greet");

	return greet ? greet(7) : -1;
}

static void *library(void)
{
	char path[PATH_MAX] = "";
	char *name;

	if (readlink("/proc/self/exe", path, sizeof(path) - 10) < 0)
		return NULL;
	name = strrchr(path, '/');
	strcpy(name ? name + 1 : path, "late.so");
	return dlopen(path, RTLD_NOW);
}

static long now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

int main(int argc, char **argv)
{
	void *late = NULL;
	int status;

	for (int i = 1; i < argc; i++) {
		const char *word = argv[i];

		if (!strcmp(word, "open")) {
			long before = now_ms();

			late = library();
			if (!late)
				printf("%s\n", dlerror());
			/* Whether the process was held twice, each time for the maximum. */
			if (now_ms() - before > 1800)
				printf("opened late\n");
		} else if (!strcmp(word, "call")) {
			call(late);
		} else if (!strcmp(word, "close")) {
			dlclose(late);
		} else if (!strcmp(word, "fork")) {
			fflush(stdout);
			if (!fork()) {
				call(late);
				_exit(0);
			}
			wait(&status);
		} else if (!strcmp(word, "generations")) {
			/* A child whose own child makes the call. */
			fflush(stdout);
			if (!fork()) {
				if (!fork()) {
					call(late);
					_exit(0);
				}
				wait(&status);
				_exit(0);
			}
			wait(&status);
		} else if (!strcmp(word, "run")) {
			/* A child that executes a program. */
			fflush(stdout);
			if (!fork()) {
				execlp("pid-loader", "pid-loader", "open", "call", NULL);
				_exit(1);
			}
			wait(&status);
		} else if (!strcmp(word, "wait")) {
			wait_for_signal();
		} else if (!strcmp(word, "done")) {
			printf("done\n");
			fflush(stdout);
		}
	}
	return 0;
}
