// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

/*
 * @gcc: -shared -fPIC
 * Preloaded into a consumer. Once the consumer traces, a copy of it stays, with the file, and it
 * becomes something else.
 * SEAT=exec: it executes `/tmp/work steps mark /tmp/stepped await /tmp/go`, and the copy continues
 *   as the consumer when /tmp/stepped exists, for 2 s.
 * SEAT=ended: its control calls are made by threads that exit, and it exits; the copy stays until
 *   /tmp/go exists.
 * SEAT=several: it stays, and several threads query its status as often as they can until /tmp/go
 *   exists.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <linux/dtrace.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct call {
	int fd, result, error;
	unsigned long cmd;
	void *arg;
};

static void await(const char *file)
{
	struct timespec a_little = { .tv_nsec = 20 * 1000 * 1000 };

	for (int n = 0; n < 3000 && access(file, F_OK); n++)
		nanosleep(&a_little, NULL);
}

static void *make(void *data)
{
	int (*next)(int, unsigned long, ...) = dlsym(RTLD_NEXT, "ioctl");
	struct call *call = data;

	errno = 0;
	call->result = next(call->fd, call->cmd, call->arg);
	call->error = errno;
	return NULL;
}

static void *ask(void *data)
{
	struct dtrace_status status;
	struct call call = { .fd = (long)data, .cmd = DTRACEIOC_STATUS, .arg = &status };

	while (access("/tmp/go", F_OK))
		make(&call);
	return NULL;
}

int ioctl(int fd, unsigned long cmd, ...)
{
	const char *seat = getenv("SEAT");
	struct call call = { .fd = fd, .cmd = cmd };
	pthread_t thread;
	va_list rest;

	va_start(rest, cmd);
	call.arg = va_arg(rest, void *);
	va_end(rest);
	if (!seat || strcmp(seat, "ended") || pthread_create(&thread, NULL, make, &call))
		make(&call);
	else
		pthread_join(thread, NULL);
	errno = call.error;
	if (!seat || cmd != DTRACEIOC_GO || call.result)
		return call.result;
	unsetenv("SEAT");
	if (!strcmp(seat, "several")) {
		for (int n = 0; n < 4; n++)
			pthread_create(&thread, NULL, ask, (void *)(long)fd);
		return call.result;
	}
	if (!strcmp(seat, "exec")) {
		if (fork()) {
			unsetenv("LD_PRELOAD");
			execl("/tmp/work", "work", "steps", "mark", "/tmp/stepped", "await", "/tmp/go", NULL);
			_exit(1);
		}
		await("/tmp/stepped");
		if (!fork()) {
			sleep(2);
			kill(getppid(), SIGTERM);
			_exit(0);
		}
		return call.result;
	}
	if (!fork())
		await("/tmp/go");
	_exit(0);
}
