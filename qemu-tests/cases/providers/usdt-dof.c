// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

/*
 * Usage: usdt-dof [WORD...]. A program that registers probes at run time. Each word names a
 * piece of work. The device stays open.
 */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "usdt-dof.h"
#include "wait-word.h"

extern const char __executable_start[];
/* The address at which the program is loaded. */
static uint64_t base;
#define ADDRESS(function) 0
static struct image good = IMAGE(T_WORK, 2, ADDRESS), third = IMAGE(T_WORK, 3, ADDRESS);
static int helper = -1;

static long reported(const char *what, long answer)
{
	if (answer < 0)
		printf("%s: %s\n", what, strerrorname_np(errno));
	return answer;
}

static void fill(struct image *image)
{
	image->probes[0].addr = image->probes[1].addr = (uint64_t)dof_work - base;
	image->probes[2].addr = (uint64_t)dof_tail - base;
	image->probes[3].addr = (uint64_t)(image == &third ? dof_asks_by_address : dof_asks) - base;
}

static long add(const char *module, const void *image)
{
	struct dtrace_dofhelper object = { .addr = base, .dof = (uint64_t)image };

	memcpy(object.module, module, strlen(module) + 1);
	return ioctl(helper, DTRACEHIOC_ADDDOF, &object);
}

/* Registers a copy of the image in which one field has another value. */
static void change(const char *what, size_t offset, size_t size, uint64_t value)
{
	static struct image bad;
	long answer;

	bad = good;
	memcpy((char *)&bad + offset, &value, size);
	answer = add("bad", &bad);
	if (answer >= 0) {
		printf("%s: registered\n", what);
		ioctl(helper, DTRACEHIOC_REMOVE, answer);
	} else
		reported(what, answer);
}
#define CHANGE(field, value) change(#field, offsetof(struct image, field), sizeof(good.field), value)

/* Registers as many objects of the maximum size as fit, at most 30. Returns their number. */
static long add_large(void)
{
	static union {
		struct image image;
		char room[DTRACE_REGISTERED_MAX];
	} large;
	long n;

	for (n = 0; n < 30; n++) {
		large.image = good;
		large.image.hdr.loadsz = sizeof(large);
		large.image.probes[0].offidx = n;
		if (add("large", &large) < 0)
			break;
	}
	return n;
}

/* Three processes register as many objects as they can, at the same time or one after another.
 * Returns the total number. */
static long large(int at_a_time)
{
	int told[2], kept[2];
	long n, sum = 0;

	if (pipe(told) || pipe(kept))
		return -1;
	for (int child = 0; child < 3; child++) {
		if (!fork()) {
			close(kept[1]);
			n = add_large();
			if (write(told[1], &n, sizeof(n)) != sizeof(n))
				_exit(1);
			_exit(at_a_time ? read(kept[0], &n, 1) != 0 : 0);
		}
		if (read(told[0], &n, sizeof(n)) != sizeof(n))
			return -1;
		sum += n;
		if (!at_a_time)
			wait(NULL);
	}
	close(kept[1]);
	while (wait(NULL) > 0)
		;
	return sum;
}

/* Returns memory registered with a userfaultfd that never provides its pages. */
static void *never_there(void)
{
	void *at = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register range = { .range = { (uintptr_t)at, 4096 }, .mode = UFFDIO_REGISTER_MODE_MISSING };
	int fd = syscall(SYS_userfaultfd, O_CLOEXEC);

	if (fd < 0 || ioctl(fd, UFFDIO_API, &api) || ioctl(fd, UFFDIO_REGISTER, &range))
		perror("userfaultfd");
	return at;
}

static void hostile(void)
{
	char *page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct dtrace_dofhelper unnamed;
	static struct image many[2];
	long n, answer = 0;

	munmap(page + 4096, 4096);
	reported("nothing", add("bad", NULL));
	memcpy(page + 4096 - 64, &good, 64);
	reported("cut off", add("bad", page + 4096 - 64));
	reported("half a header", add("bad", page + 4096 - 32));
	reported("of the kernel", add("bad", (void *)0xffffffff81000000));
	reported("never there", add("bad", never_there()));
	reported("no argument", ioctl(helper, DTRACEHIOC_ADDDOF, 8));
	reported("no call", ioctl(helper, _IOW(0xd8, 9, int), 0));
	memset(&unnamed, 'x', sizeof(unnamed));
	reported("endless name", ioctl(helper, DTRACEHIOC_ADDDOF, &unnamed));
	reported("never registered", ioctl(helper, DTRACEHIOC_REMOVE, 4711));
	reported("look at nothing", ioctl(helper, DTRACEHIOC_LOOK, 8));
	reported("look at data", ioctl(helper, DTRACEHIOC_LOOK, page));
	CHANGE(hdr.ident[0], 0);
	CHANGE(hdr.loadsz, 10);
	CHANGE(hdr.loadsz, 1 << 30);
	CHANGE(hdr.loadsz, -1);
	CHANGE(hdr.secnum, -1);
	CHANGE(hdr.secnum, 100);
	CHANGE(hdr.secsize, 1);
	CHANGE(hdr.secsize, -1);
	CHANGE(hdr.secoff, -1);
	CHANGE(hdr.ident[4], 3);
	CHANGE(hdr.ident[6], 9);
	CHANGE(hdr.flags, 1);
	CHANGE(secs[PROBES].size, -1);
	CHANGE(secs[STRTAB].offset, sizeof(good));
	CHANGE(secs[PROVIDER].ty, 0);
	printf("large at a time: %ld, one after the other: %ld\n", large(1), large(0));
	/* Registration does not check the contents of the image (an invalid `offidx` here); the
	 * consumer does. */
	for (n = 0; n < 40 && answer >= 0; n++) {
		many[0] = good;
		many[0].probes[0].offidx = n;
		answer = add("many", &many[0]);
		if (answer >= 0)
			memset(&many[0], 0, sizeof(many[0]));
	}
	printf("%ld are too many: %s\n", n, strerrorname_np(errno));
}

int main(int argc, char **argv)
{
	long number = 0;

	base = (uint64_t)__executable_start;
	fill(&good);
	fill(&third);
	helper = open("/dev/dtracehelper", O_RDWR | O_CLOEXEC);
	if (helper < 0)
		helper = open("/dev/dtrace/helper", O_RDWR | O_CLOEXEC);
	if (helper < 0)
		printf("no device: %s\n", strerrorname_np(errno));
	for (int i = 1; i < argc; i++) {
		const char *word = argv[i];

		if (!strcmp(word, "register")) {
			number = reported(word, add("usdt-dof", &good));
		} else if (!strcmp(word, "third")) {
			number = reported(word, add("usdt-dof", &third));
		} else if (!strcmp(word, "junk")) {
			/* The same probes, of another object, that pass other arguments. */
			static struct image junk;

			junk = good;
			junk.args[0] = 2;
			number = reported(word, add("junk", &junk));
		} else if (!strcmp(word, "named")) {
			number = reported(word, add("another", &good));
		} else if (!strcmp(word, "classic")) {
			struct dtrace_dofhelper object = { .module = "usdt-dof", .addr = base, .dof = (uint64_t)&good };

			number = reported(word, ioctl(helper, 0x64746803, &object));
		} else if (!strcmp(word, "plain")) {
			/* DTRACEHIOC_ADD has no base address: the addresses in the image are
			 * absolute. */
			struct image *image = malloc(sizeof(*image));

			*image = good;
			for (int n = 0; n < 4; n++)
				image->probes[n].addr += base;
			number = reported(word, ioctl(helper, DTRACEHIOC_ADD, image));
			memset(image, 0, sizeof(*image));
			free(image);
		} else if (!strcmp(word, "look")) {
			number = reported(word, ioctl(helper, DTRACEHIOC_LOOK, main));
		} else if (!strcmp(word, "remove")) {
			reported(word, ioctl(helper, DTRACEHIOC_REMOVE, number));
		} else if (!strcmp(word, "close")) {
			close(helper);
		} else if (!strcmp(word, "number")) {
			printf("number %ld\n", number);
		} else if (!strcmp(word, "hostile")) {
			hostile();
		} else if (!strcmp(word, "fire")) {
			int asks = dof_asks(), asks3 = dof_asks_by_address();

			dof_work();
			printf("asks %d %d, tail %ld\n", asks, asks3, dof_tail(1, 2, 3, 4, 5, 6, 77));
		} else if (!strcmp(word, "fork")) {
			int status;

			fflush(stdout);
			if (!fork()) {
				dof_work();
				_exit(0);
			}
			wait(&status);
			printf("fork %d\n", status);
		} else if (!strcmp(word, "exec")) {
			fflush(stdout);
			execvp(argv[0], argv + i);
			_exit(1);
		} else if (!strcmp(word, "wait")) {
			wait_for_signal();
		}
		fflush(stdout);
	}
	return 0;
}
