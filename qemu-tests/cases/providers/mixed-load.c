// SPDX-License-Identifier: MIT OR Apache-2.0
// SPDX-FileCopyrightText: The DTrace for Linux authors

/*
 * mixed-load SECONDS DIRECTORY: typical work, several things at once, repeated until the time is
 * up, and at least once each: many forks, files written and read back, a connection that
 * transfers data both ways, a program assembled, linked and run. What comes back is compared
 * with what was sent. Each of them calls getppid() meanwhile; the number of all calls is
 * printed, for comparison with other counts.
 */

#define _GNU_SOURCE
#include <err.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CHILDREN 8
#define CALLS 20
#define BYTES 20000

/* The calls of all processes. */
static unsigned long *calls;
static const char *directory;

static void call(void)
{
	int i;

	for (i = 0; i < CALLS; i++)
		getppid();
	__atomic_add_fetch(calls, CALLS, __ATOMIC_RELAXED);
}

static void fill(char *data, unsigned int seed)
{
	int i;

	for (i = 0; i < BYTES; i++)
		data[i] = seed = seed * 1664525 + 1013904223;
}

static void must_end(pid_t pid, const char *what)
{
	int status;

	if (pid < 0 || waitpid(pid, &status, 0) != pid || status)
		errx(1, "%s", what);
}

static void forks(unsigned int round)
{
	pid_t pids[CHILDREN];
	int i;

	(void)round;
	for (i = 0; i < CHILDREN; i++) {
		pids[i] = fork();
		if (!pids[i]) {
			call();
			_exit(0);
		}
	}
	for (i = 0; i < CHILDREN; i++)
		must_end(pids[i], "a child");
}

static void disk(unsigned int round)
{
	char data[BYTES], back[BYTES], name[4096];
	int fd;

	call();
	fill(data, round);
	snprintf(name, sizeof(name), "%s/file%u", directory, round % 4);
	fd = open(name, O_RDWR | O_CREAT | O_TRUNC, 0600);
	if (fd < 0 || write(fd, data, BYTES) != BYTES || fsync(fd))
		err(1, "write");
	if (posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) || pread(fd, back, BYTES, 0) != BYTES || memcmp(data, back, BYTES))
		errx(1, "what was written does not come back");
	close(fd);
	if (round % 4 == 3 && unlink(name))
		err(1, "unlink");
}

static void receive(int fd, char *data)
{
	ssize_t got, have;

	for (have = 0; have < BYTES; have += got) {
		got = read(fd, data + have, BYTES - have);
		if (got <= 0)
			err(1, "receive");
	}
}

/* Both ends of one connection; the socket takes all of the data at once. */
static void network(unsigned int round)
{
	struct sockaddr_in here = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t length = sizeof(here);
	char data[BYTES], back[BYTES];
	int server = socket(AF_INET, SOCK_STREAM, 0), client = socket(AF_INET, SOCK_STREAM, 0), accepted;

	call();
	fill(data, round);
	if (bind(server, (void *)&here, sizeof(here)) || listen(server, 1) || getsockname(server, (void *)&here, &length))
		err(1, "server");
	if (connect(client, (void *)&here, sizeof(here)))
		err(1, "connect");
	accepted = accept(server, NULL, NULL);
	if (write(client, data, BYTES) != BYTES)
		err(1, "send");
	receive(accepted, back);
	if (write(accepted, back, BYTES) != BYTES)
		err(1, "send back");
	memset(back, 0, BYTES);
	receive(client, back);
	if (memcmp(data, back, BYTES))
		errx(1, "what was sent does not come back");
	close(server);
	close(client);
	close(accepted);
}

/* A program that exits with the round's number. */
static void compile(unsigned int round)
{
	char command[3 * 4096];
	pid_t pid;

	call();
	snprintf(command, sizeof(command),
		 "cd %s && printf '.globl _start\\n_start: mov $60, %%%%eax\\nmov $%u, %%%%edi\\nsyscall\\n' | as -o %u.o && "
		 "ld -o %u %u.o && ./%u; [ $? = %u ] && rm %u %u.o",
		 directory, round % 100, round, round, round, round, round % 100, round, round);
	pid = fork();
	if (!pid) {
		execl("/bin/sh", "sh", "-c", command, NULL);
		_exit(127);
	}
	must_end(pid, "compile");
}

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec + time.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
	static void (*const works[])(unsigned int) = { forks, disk, network, compile };
	static const char *const names[] = { "forks", "disk", "network", "compile" };
	const int count = sizeof(works) / sizeof(*works);
	pid_t pids[sizeof(works) / sizeof(*works)];
	double until;
	unsigned int round;
	int i;

	if (argc != 3)
		errx(2, "usage: mixed-load SECONDS DIRECTORY");
	until = now() + atof(argv[1]);
	directory = argv[2];
	calls = mmap(NULL, sizeof(*calls), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (calls == MAP_FAILED)
		err(1, "mmap");
	for (i = 0; i < count; i++) {
		pids[i] = fork();
		if (!pids[i]) {
			round = 0;
			do
				works[i](round++);
			while (now() < until);
			fprintf(stderr, "%s: %u rounds\n", names[i], round);
			_exit(0);
		}
	}
	for (i = 0; i < count; i++)
		must_end(pids[i], names[i]);
	printf("calls %lu\n", *calls);
	return 0;
}
