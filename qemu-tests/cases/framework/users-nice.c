// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

/*
 * users-nice SECONDS: a thread with the highest nice value, and then one of SCHED_IDLE, makes
 * control calls, while another thread tries at each moment to raise its priority. Prints how the
 * thread runs at the end. @gcc: -pthread
 */

#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/dtrace.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

static atomic_int caller, is_over;

static void *calls(void *device)
{
	int fd = *(int *)device;
	struct dtrace_conf conf;

	caller = gettid();
	while (!is_over)
		ioctl(fd, DTRACEIOC_CONF, &conf);
	printf("nice %d%s\n", getpriority(PRIO_PROCESS, 0), sched_getscheduler(0) == SCHED_IDLE ? ", idle" : "");
	return NULL;
}

static void run(const char *name, int seconds, int fd)
{
	const struct sched_param none = { 0 };
	unsigned long gained = 0;
	pthread_t thread;
	time_t end;

	caller = is_over = 0;
	if (pthread_create(&thread, NULL, calls, &fd))
		exit(1);
	while (!caller)
		usleep(1000);
	for (end = time(NULL) + seconds; time(NULL) < end;) {
		gained += !setpriority(PRIO_PROCESS, caller, 1);
		gained += !sched_setscheduler(caller, SCHED_BATCH, &none);
	}
	is_over = 1;
	pthread_join(thread, NULL);
	fprintf(stderr, "%s: %lu times something was allowed\n", name, gained);
}

int main(int argc, char **argv)
{
	const struct sched_param none = { 0 };
	int seconds = argc > 1 ? atoi(argv[1]) : 1;
	int fd = open("/dev/dtrace", O_RDWR);

	if (fd < 0 || setpriority(PRIO_PROCESS, 0, 19))
		return 1;
	run("nice", seconds, fd);
	if (sched_setscheduler(0, SCHED_IDLE, &none))
		return 1;
	run("idle", seconds, fd);
	return 0;
}
