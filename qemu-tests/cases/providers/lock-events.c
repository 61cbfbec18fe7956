// SPDX-License-Identifier: MIT OR Apache-2.0
// SPDX-FileCopyrightText: The DTrace for Linux authors

/*
 * Takes locks of the kernel in several threads at once: the mutex of a pipe, and the semaphore
 * of the address space, for reading and for writing.
 */

#define _GNU_SOURCE
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#define THREADS 4
#define ROUNDS 3000

static int ends[2];

static void *work(void *arg)
{
	unsigned char resident;
	char byte = 0;
	int i;

	for (i = 0; i < ROUNDS; i++) {
		void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (page == MAP_FAILED || mincore(page, 4096, &resident) || munmap(page, 4096))
			_exit(1);
		if (write(ends[1], &byte, 1) != 1 || read(ends[0], &byte, 1) != 1)
			_exit(1);
	}
	return arg;
}

int main(void)
{
	pthread_t threads[THREADS];
	int i;

	if (pipe(ends))
		return 1;
	for (i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, work, NULL))
			return 1;
	for (i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
