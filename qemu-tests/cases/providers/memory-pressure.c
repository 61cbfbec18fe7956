// SPDX-License-Identifier: MIT OR Apache-2.0
// SPDX-FileCopyrightText: The DTrace for Linux authors

/* memory-pressure MEGABYTES: writes to each page of that much memory, twice. */

#include <err.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	size_t page = sysconf(_SC_PAGESIZE), size, at;
	char *memory;
	int round;

	if (argc != 2)
		errx(2, "usage: memory-pressure MEGABYTES");
	size = strtoul(argv[1], NULL, 0) << 20;
	memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED || madvise(memory, size, MADV_NOHUGEPAGE))
		err(1, "memory");
	for (round = 0; round < 2; round++)
		for (at = 0; at < size; at += page)
			memory[at]++;
	return 0;
}
