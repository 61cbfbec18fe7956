// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

/*
 * A program that holds the helper device open in every way. helper-files keeps it until it gets
 * SIGUSR1, and prints the results of calls before and after. helper-files N has N processes open
 * it, call it and close it, over and over, until SIGUSR1.
 */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/dtrace.h>

#include "../providers/wait-word.h"

#define DEVICE "/dev/dtracehelper"

static const char *name(long answer)
{
	return answer < 0 ? strerrorname_np(errno) : "done";
}

/* Calls as a 32-bit program does. */
static long call32(int fd)
{
	long answer;

	asm volatile("int $0x80" : "=a"(answer) : "a"(54L), "b"((long)fd), "c"((long)DTRACEHIOC_REMOVE), "d"(4711L)
		     : "memory", "r8", "r9", "r10", "r11");
	errno = -answer;
	return answer < 0 ? -1 : answer;
}

static void call(const char *what, int fd)
{
	long answer = ioctl(fd, DTRACEHIOC_REMOVE, 4711);

	printf("%s: %s", what, name(answer));
	answer = call32(fd);
	printf(" %s\n", name(answer));
}

/* Sends a file descriptor through a socket and leaves it there. */
static void put(int socket, int fd)
{
	union {
		char room[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = { 0 };
	struct iovec one = { "x", 1 };
	struct msghdr message = { .msg_iov = &one, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control) };
	struct cmsghdr *head = CMSG_FIRSTHDR(&message);

	head->cmsg_level = SOL_SOCKET;
	head->cmsg_type = SCM_RIGHTS;
	head->cmsg_len = CMSG_LEN(sizeof(fd));
	memcpy(CMSG_DATA(head), &fd, sizeof(fd));
	if (sendmsg(socket, &message, 0) != 1)
		perror("sendmsg");
}

static int take(int socket)
{
	union {
		char room[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control;
	char byte;
	struct iovec one = { &byte, 1 };
	struct msghdr message = { .msg_iov = &one, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control) };
	int fd = -1;

	if (recvmsg(socket, &message, 0) == 1)
		memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(fd));
	return fd;
}

static int keep(void)
{
	int fd = open(DEVICE, O_RDWR), other = open(DEVICE, O_RDONLY), copy = dup(fd), sockets[2], status;
	struct pollfd ready = { fd, POLLIN, 0 };

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, sockets))
		return 1;
	put(sockets[0], other);
	close(other);
	call("before", fd);
	wait_for_signal();
	call("afterwards", fd);
	fflush(stdout);
	if (!fork()) {
		call("in a child", copy);
		fflush(stdout);
		_exit(0);
	}
	wait(&status);
	close(fd);
	call("a copy", copy);
	other = take(sockets[1]);
	call("from a socket", other);
	ready.fd = other;
	printf("poll %d, read: %s\n", poll(&ready, 1, 0), name(read(other, &status, 1)));
	printf("open: %s\n", name(open(DEVICE, O_RDWR)));
	printf("close: %s", name(close(copy)));
	printf(" %s\n", name(close(other)));
	return 0;
}

/* Shared by all processes. */
static volatile int *is_over;

static void stop(int signal)
{
	(void)signal;
	*is_over = 1;
}

/* Opens, calls and closes files; returns the first error that is not one of the possible ones. */
static int hurry(unsigned int seed)
{
	int files[4] = { -1, -1, -1, -1 };

	while (!*is_over) {
		int *fd = &files[rand_r(&seed) % 4];

		if (*fd >= 0 && rand_r(&seed) % 4 == 0) {
			close(*fd);
			*fd = -1;
		}
		if (*fd < 0)
			*fd = open(DEVICE, O_RDWR);
		if (*fd < 0 && errno != ENOENT && errno != ENODEV && errno != ENXIO)
			return errno;
		if (*fd < 0 || rand_r(&seed) % 2)
			continue;
		if (ioctl(*fd, DTRACEHIOC_REMOVE, 4711) >= 0 || (errno != ENOENT && errno != EIO))
			return errno;
		if (ioctl(*fd, DTRACEHIOC_ADDDOF, 8) >= 0 || (errno != EFAULT && errno != EIO))
			return errno;
	}
	return 0;
}

int main(int argc, char **argv)
{
	int count = argc > 1 ? atoi(argv[1]) : 0, status, bad = 0;

	if (!count)
		return keep();
	is_over = mmap(NULL, sizeof(*is_over), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	signal(SIGUSR1, stop);
	for (int n = 0; n < count; n++)
		if (!fork())
			_exit(hurry(n + 1));
	printf("ready\n");
	fflush(stdout);
	while (wait(&status) > 0 || errno == EINTR)
		bad |= status;
	printf("hurried: %d\n", bad);
	return 0;
}
