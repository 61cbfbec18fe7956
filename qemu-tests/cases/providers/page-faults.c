// SPDX-License-Identifier: MIT OR Apache-2.0
// SPDX-FileCopyrightText: The DTrace for Linux authors

/* Touches 200 pages for the first time, each by itself. */

#include <err.h>
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

int main(void)
{
	long size = sysconf(_SC_PAGESIZE), n;
	char *pages = mmap(NULL, 200 * size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	/* A kernel without huge pages does not know the advice. */
	if (pages == MAP_FAILED || (madvise(pages, 200 * size, MADV_NOHUGEPAGE) && errno != EINVAL))
		err(1, "pages");
	for (n = 0; n < 200; n++)
		pages[n * size] = 1;
	return 0;
}
