// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

/*
 * Usage: syscall-pages WORD.... Makes system calls with memory that is not present yet. Each
 * word names a piece of work, whose result it prints.
 */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PAGE 4096L
#define ROUNDS 200

static char file[] = "/tmp/syscall-pages";

/* Returns a page of a file that is not in the page tables. */
static char *map(void)
{
	int fd = open(file, O_RDWR | O_CREAT, 0600);
	char *at;

	if (fd < 0 || ftruncate(fd, PAGE) || pwrite(fd, "/nonesuch/file", 15, 0) < 0)
		exit(1);
	at = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, 0);
	close(fd);
	if (at == MAP_FAILED)
		exit(1);
	return at;
}

/* open() by the system call interface of 32-bit programs. */
static long open_ia32(const char *name)
{
	long result;

	__asm__ volatile("int $0x80" : "=a"(result) : "a"(5L), "b"(name), "c"(0L), "d"(0L) : "memory", "r8", "r9", "r10", "r11");
	return result;
}

/* Returns memory registered with a userfaultfd that never provides its pages. */
static char *unanswered(void)
{
	char *at = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register range = { .range = { (uintptr_t)at, PAGE }, .mode = UFFDIO_REGISTER_MODE_MISSING };
	int fd = syscall(SYS_userfaultfd, O_CLOEXEC);

	if (at == MAP_FAILED || fd < 0 || ioctl(fd, UFFDIO_API, &api) || ioctl(fd, UFFDIO_REGISTER, &range))
		exit(1);
	return at;
}

static void work(const char *word, char *at)
{
	long failed = 0;

	if (!strcmp(word, "access")) {
		for (int i = 0; i < ROUNDS; i++) {
			madvise(at, PAGE, MADV_DONTNEED);
			failed += syscall(SYS_access, at, F_OK) < 0 && errno == ENOENT;
		}
	} else if (!strcmp(word, "twice")) {
		madvise(at, PAGE, MADV_DONTNEED);
		failed = syscall(SYS_access, at, F_OK) + syscall(SYS_access, at, F_OK);
	} else if (!strcmp(word, "low")) {
		/* Moves the page to an address that fits into 32 bits. */
		at = mremap(at, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, (void *)0x10000000);
		madvise(at, PAGE, MADV_DONTNEED);
		failed = open_ia32(at) == -ENOENT;
	} else if (!strcmp(word, "write")) {
		at = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		failed = write(-1, at, 8) < 0 && errno == EBADF;
	} else if (!strcmp(word, "none")) {
		failed = syscall(SYS_access, 16, F_OK) < 0 && errno == EFAULT;
	} else if (!strcmp(word, "unanswered")) {
		/* The descriptor is invalid, so the call itself does not read the buffer. */
		failed = write(-1, unanswered(), 8) < 0 && errno == EBADF;
	}
	printf("%s %ld\n", word, failed);
}

int main(int argc, char **argv)
{
	char *at = map();

	for (int i = 1; i < argc; i++)
		work(argv[i], at);
	unlink(file);
	return 0;
}
