// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

/*
 * A thread waits in select() for events of processes, while another ends the subscription, as
 * often as the argument says. The waiting thread is still in the wait queue when it is woken by
 * a signal.
 *
 * @gcc: -pthread
 */

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/select.h>
#include <unistd.h>
#include <linux/dtrace.h>

static void nothing(int signal)
{
	(void)signal;
}

/* Waits for an event, which never comes, or for a signal. */
static void *waits(void *file)
{
	int fd = *(int *)file;
	fd_set files;

	FD_ZERO(&files);
	FD_SET(fd, &files);
	if (select(fd + 1, &files, NULL, NULL, NULL) != -1 || errno != EINTR)
		puts("there was something");
	return NULL;
}

int main(int argc, char **argv)
{
	struct sigaction woken = { .sa_handler = nothing };
	struct dtrace_hold hold = { .kind = DTRACE_HOLD_EXEC };
	int times = argc > 1 ? atoi(argv[1]) : 1;
	int file = open("/dev/dtrace", O_RDWR);
	pthread_t thread;
	unsigned int cpu;

	if (file < 0 || sigaction(SIGUSR1, &woken, NULL)) {
		perror("/dev/dtrace");
		return 1;
	}
	strcpy((char *)hold.name, "nobody");
	for (int n = 0; n < times; n++) {
		if (ioctl(file, DTRACEIOC_HOLD, &hold)) {
			perror("HOLD");
			return 1;
		}
		if (pthread_create(&thread, NULL, waits, &file))
			return 1;
		usleep(100000);
		/* Nothing is traced, so STOP ends nothing but the subscription. */
		if (ioctl(file, DTRACEIOC_STOP, &cpu) != -1 || errno != EINVAL)
			puts("STOP stops something");
		usleep(50000);
		pthread_kill(thread, SIGUSR1);
		pthread_join(thread, NULL);
	}
	puts("woken");
	return 0;
}
