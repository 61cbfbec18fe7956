// SPDX-License-Identifier: MIT OR Apache-2.0
// SPDX-FileCopyrightText: The DTrace for Linux authors

/* Reads and writes 1000 bytes with each of the system calls that 32-bit programs have for that,
 * between two calls of getppid(). */

#include <err.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#define BYTES 1000

/* The sixth argument is 0. */
static int call32(int number, long a, long b, long c)
{
	int value;

	__asm__ volatile("lea -128(%%rsp), %%rsp; push %%rbp; xor %%ebp, %%ebp; int $0x80; pop %%rbp; lea 128(%%rsp), %%rsp"
			 : "=a"(value)
			 : "a"(number), "b"(a), "c"(b), "d"(c), "S"(0L), "D"(0L)
			 : "memory", "cc", "r8", "r9", "r10", "r11");
	return value;
}

int main(void)
{
	/* read, pread64, write, pwrite64; readv, preadv, preadv2, writev, pwritev, pwritev2. */
	static const int plain[] = { 3, 180, 4, 181 }, vectors[] = { 145, 333, 378, 146, 334, 379 };
	uint32_t *low = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
	int zero = open("/dev/zero", O_RDWR);
	unsigned int i;

	if (low == MAP_FAILED || zero < 0)
		err(1, "begin");
	/* An iovec of a 32-bit program, for the memory after it. */
	low[0] = (uint32_t)(uintptr_t)(low + 2);
	low[1] = BYTES;
	getppid();
	for (i = 0; i < sizeof(plain) / sizeof(*plain); i++)
		if (call32(plain[i], zero, (long)(low + 2), BYTES) != BYTES)
			errx(1, "call %d", plain[i]);
	for (i = 0; i < sizeof(vectors) / sizeof(*vectors); i++)
		if (call32(vectors[i], zero, (long)low, 1) != BYTES)
			errx(1, "call %d", vectors[i]);
	getppid();
	return 0;
}
