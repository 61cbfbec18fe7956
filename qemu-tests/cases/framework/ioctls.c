// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

/*
 * Executes steps on /dev/dtrace from standard input, whatever they are:
 * qemu-tests/src/bin/ioctl-fuzz writes the steps.
 *
 * A step is a struct step, the argument's bytes, addresses to put into it, and a DOF image.
 * Arguments, images and room for answers are in areas with unmapped pages behind them, so that
 * the kernel also meets truncated ranges, and read-only memory. A step may be executed by two
 * threads at a time. There is no answer to a step; at the end the calls are counted by result.
 * An errno that no call may return is an error.
 */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <linux/dtrace.h>

#define FILES 4
#define PAGE 4096
#define ERRNOS 134

enum what { OPEN, CLOSE, CALL, BOTH, MAP, READ, WRITE, POLL, FORK, INFO, WORK, NOTE, WHATS };
enum place { START, EDGE, BEYOND, READ_ONLY, RAW };
enum target { IMAGE, IMAGE_EDGE, ROOM, ROOM_EDGE, CONSTANT, NOWHERE, NUMBER, INSIDE };

struct step {
	uint8_t what, file, place, fixes;
	uint32_t cmd, size, image_size;
	uint64_t raw;
};

struct fix {
	uint16_t offset, target;
	uint32_t pad;
	uint64_t number;
};

struct area {
	char *start, *end;
};

/* The errors that the kernel returns for invalid requests and for shortages. */
static const int known[] = { 0, EPERM, ENOENT, ESRCH, EINTR, E2BIG, EAGAIN, ENOMEM, EACCES, EFAULT, EBUSY, ENODEV, EINVAL, ENOTTY,
	ENOSPC, ESPIPE, EBADF, EOVERFLOW };

static int files[FILES] = { -1, -1, -1, -1 };
static struct area arguments, images, room, constant;
static unsigned long calls[256][ERRNOS], others[WHATS];
static unsigned long in_all;

static struct area map(size_t size)
{
	char *start = mmap(NULL, size + PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (start == MAP_FAILED || mprotect(start, size, PROT_READ | PROT_WRITE)) {
		perror("ioctls: mmap");
		exit(1);
	}
	return (struct area){ start, start + size };
}

static void get(void *to, size_t size)
{
	if (size && fread(to, size, 1, stdin) != 1) {
		fputs("ioctls: a step is cut off\n", stderr);
		exit(1);
	}
}

static uint64_t address(const struct fix *fix, size_t image_size)
{
	switch ((enum target)fix->target) {
	case IMAGE:
		return (uint64_t)images.start;
	case IMAGE_EDGE:
		return (uint64_t)(images.end - image_size);
	case ROOM:
		return (uint64_t)room.start;
	case ROOM_EDGE:
		return (uint64_t)(room.end - fix->number % PAGE);
	case CONSTANT:
		return (uint64_t)constant.start;
	case NOWHERE:
		return (uint64_t)room.end;
	case INSIDE:
		return (uint64_t)images.start + fix->number;
	case NUMBER:
		break;
	}
	return fix->number;
}

/* The address of the argument, after copying it there, or the one that the step gives. */
static uint64_t argument(const struct step *step, const char *bytes)
{
	char *at = arguments.start;

	switch ((enum place)step->place) {
	case START:
		break;
	case EDGE:
		at = arguments.end - step->size;
		break;
	case BEYOND:
		at = arguments.end - step->size / 2;
		memcpy(at, bytes, step->size / 2);
		return (uint64_t)at;
	case READ_ONLY:
		return (uint64_t)constant.start;
	case RAW:
		return step->raw;
	}
	memcpy(at, bytes, step->size);
	return (uint64_t)at;
}

static int call(int file, uint32_t cmd, uint64_t arg)
{
	return ioctl(file, cmd, arg) < 0 ? errno : 0;
}

/* Calls of the helper device are counted from 128 on. */
static void count(uint32_t cmd, int result)
{
	bool helper = _IOC_TYPE(cmd) != DTRACE_IOC_TYPE && (_IOC_TYPE(cmd) == DTRACE_HELPER_IOC_TYPE || cmd >> 8 == DTRACE_HELPER_CLASSIC >> 8);

	calls[(cmd & 0x7f) | (helper ? 0x80 : 0)][result < ERRNOS ? result : ERRNOS - 1]++;
	in_all++;
}

struct other {
	int file;
	uint32_t cmd;
	uint64_t arg;
	int result;
};

static void *other_thread(void *arg)
{
	struct other *other = arg;

	other->result = call(other->file, other->cmd, other->arg);
	return NULL;
}

static void both(int file, uint32_t cmd, uint64_t arg)
{
	struct other other = { file, cmd, arg, 0 };
	pthread_t thread;

	if (pthread_create(&thread, NULL, other_thread, &other))
		return;
	count(cmd, call(file, cmd, arg));
	pthread_join(thread, NULL);
	count(cmd, other.result);
}

/* Passes the probes of the images. */
static void work(void)
{
	int zero = open("/dev/zero", O_RDONLY);
	char some[64];

	for (int i = 0; i < 20; i++) {
		getppid();
		if (read(zero, some, sizeof(some)) < 0)
			break;
	}
	close(zero);
}

/* A child has the files too, and closes them by exiting. */
static void inherit(void)
{
	pid_t child = fork();

	if (!child) {
		getppid();
		_exit(0);
	}
	if (child > 0)
		waitpid(child, NULL, 0);
}

static void info(int file)
{
	char name[64], text[512];
	int of;

	snprintf(name, sizeof(name), "/proc/self/fdinfo/%d", file);
	of = open(name, O_RDONLY);
	if (of >= 0) {
		while (read(of, text, sizeof(text)) > 0)
			;
		close(of);
	}
}

/* Writes to the kernel's log which sequence is in progress. */
static void note(const char *text, size_t size)
{
	int log = open("/dev/kmsg", O_WRONLY);

	if (log < 0 || write(log, text, size) < 0)
		perror("ioctls: /dev/kmsg");
	close(log);
}

static void change_file(const struct step *step)
{
	int *file = &files[step->file % FILES];

	if (*file >= 0)
		close(*file);
	*file = step->what == OPEN ? open(step->place ? "/dev/dtracehelper" : "/dev/dtrace", O_RDWR) : -1;
}

static void do_step(const struct step *step, const char *bytes)
{
	int file = files[step->file % FILES];
	struct pollfd event = { file, POLLIN | POLLOUT, 0 };
	void *mapped;

	others[step->what % WHATS]++;
	switch ((enum what)step->what) {
	case OPEN:
	case CLOSE:
		return change_file(step);
	case CALL:
		return count(step->cmd, call(file, step->cmd, argument(step, bytes)));
	case BOTH:
		return both(file, step->cmd, argument(step, bytes));
	case MAP:
		mapped = mmap(NULL, PAGE << step->raw % 8, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
		if (mapped != MAP_FAILED)
			munmap(mapped, PAGE << step->raw % 8);
		return;
	case READ:
		return (void)!pread(file, room.start, step->raw % PAGE, 0);
	case WRITE:
		return (void)!write(file, constant.start, step->raw % PAGE);
	case POLL:
		return (void)poll(&event, 1, 0);
	case FORK:
		return inherit();
	case INFO:
		return info(file);
	case WORK:
		return work();
	case NOTE:
		return note(bytes, step->size);
	case WHATS:
		return;
	}
}

static bool allowed(int result)
{
	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
		if (known[i] == result)
			return true;
	return false;
}

static unsigned long made(int nr)
{
	unsigned long sum = 0;

	for (int result = 0; result < ERRNOS; result++)
		sum += calls[nr][result];
	return sum;
}

/* Prints which calls had which results; returns 1 if any call returned an unexpected errno. */
static int report(void)
{
	unsigned long fine[256] = { 0 }, refused = 0;
	int status = 0;

	for (int nr = 0; nr < 256; nr++)
		for (int result = 0; result < ERRNOS; result++) {
			if (!calls[nr][result])
				continue;
			if (!result)
				fine[nr] = calls[nr][0];
			else
				refused += calls[nr][result];
			if (!allowed(result)) {
				printf("call %d gave: %s\n", nr, strerror(result));
				status = 1;
			}
		}
	printf("%lu calls: %lu refused; done:", in_all, refused);
	for (int nr = 0; nr < 256; nr++)
		if (fine[nr])
			printf(" %d×%lu", nr, fine[nr]);
	printf("\nENABLE %lu of %lu, GO %lu of %lu", fine[_IOC_NR(DTRACEIOC_ENABLE)], made(_IOC_NR(DTRACEIOC_ENABLE)),
	       fine[_IOC_NR(DTRACEIOC_GO)], made(_IOC_NR(DTRACEIOC_GO)));
	printf("\nopened %lu, mapped %lu, forked %lu\n", others[OPEN], others[MAP], others[FORK]);
	return status;
}

int main(void)
{
	struct step step;

	arguments = map(2 * PAGE);
	images = map(16 * PAGE);
	room = map(64 * PAGE);
	constant = map(PAGE);
	mprotect(constant.start, PAGE, PROT_READ);
	while (fread(&step, sizeof(step), 1, stdin) == 1) {
		static char bytes[2 * PAGE], image[16 * PAGE];
		struct fix fixes[8];

		if (step.size > sizeof(bytes) || step.image_size > sizeof(image) || step.fixes > 8) {
			fputs("ioctls: a step is too large\n", stderr);
			return 1;
		}
		get(bytes, step.size);
		get(fixes, step.fixes * sizeof(struct fix));
		get(image, step.image_size);
		memcpy(images.start, image, step.image_size);
		memcpy(images.end - step.image_size, image, step.image_size);
		for (int i = 0; i < step.fixes; i++) {
			uint64_t value = address(&fixes[i], step.image_size);

			if (fixes[i].offset + sizeof(value) <= step.size)
				memcpy(bytes + fixes[i].offset, &value, sizeof(value));
		}
		do_step(&step, bytes);
	}
	for (int i = 0; i < FILES; i++)
		close(files[i]);
	return report();
}
