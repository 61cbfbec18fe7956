// SPDX-License-Identifier: MIT OR Apache-2.0
// SPDX-FileCopyrightText: The DTrace for Linux authors

/* System calls by the convention of 32-bit programs, which any program may use; and one by its
 * own convention. */

#include <err.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static int call32(int number, long a, long b, long c)
{
	int value;

	__asm__ volatile("int $0x80" : "=a"(value) : "a"(number), "b"(a), "c"(b), "d"(c) : "memory");
	return value;
}

int main(void)
{
	char *low = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);

	if (low == MAP_FAILED)
		err(1, "mmap");
	/* open(), kill(), getppid(), with bits above the 32 that count. */
	strcpy(low, "/nonesuch");
	if (call32(5, (long)low | 1L << 40, 2, 0) != -ENOENT)
		errx(1, "open");
	if (call32(37, 1, 0, 0))
		errx(1, "kill");
	if (call32(64, 0, 0, 0) != getppid())
		errx(1, "getppid");
	return 0;
}
