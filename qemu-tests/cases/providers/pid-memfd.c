// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

/* Copies a program to a file that exists only in memory, and executes it: pid-memfd FILE
 * [WORD...]. */
#define _GNU_SOURCE
#include <err.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	int memory = memfd_create("in-memory", MFD_CLOEXEC);
	int file = argc > 1 ? open(argv[1], O_RDONLY) : -1;
	struct stat about;

	if (memory < 0 || file < 0 || fstat(file, &about) || sendfile(memory, file, NULL, about.st_size) != about.st_size)
		err(1, "memfd");
	fexecve(memory, argv + 1, environ);
	err(1, "fexecve");
}
