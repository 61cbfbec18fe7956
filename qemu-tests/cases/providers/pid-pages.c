// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

/*
 * Functions that get memory whose pages do not exist yet: pid-pages WORD.... Each word is a
 * piece of work; results are printed. The program itself does not access that memory before.
 */

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#define TEXT "pages/of/a file"
#define PAGE 4096L
#define ROUNDS 500

/* One is emulated in the exception handler, the other left to uprobes: where the first has an
 * `endbr64`, the second has an instruction that the module does not emulate. */
long look(const char *text, long n);
long odd(const char *text, long n);
__asm__(".text\n.globl look, odd\n.type look, @function\n.type odd, @function\n"
	"look:\n	endbr64\n	mov %rsi, %rax\n	ret\n.size look, .-look\n"
	"odd:\n	shld $0, %rsi, %rax\n	mov %rsi, %rax\n	ret\n.size odd, .-odd\n");

/* Returns its argument. */
__attribute__((noipa)) const char *give(const char *text)
{
	return text;
}

static char file[] = "/tmp/pid-pages";

/* Pages of a file, none of which is in the page tables, followed by pages that cannot be read.
 * Two texts are there: one on the third page, and one that begins on it and ends on the fourth. */
static char *map(void)
{
	int fd = open(file, O_RDWR | O_CREAT, 0600);
	char *at;

	if (fd < 0 || ftruncate(fd, 8 * PAGE) || pwrite(fd, TEXT, sizeof(TEXT), 2 * PAGE) < 0 ||
	    pwrite(fd, TEXT, sizeof(TEXT), 3 * PAGE - 4) < 0)
		exit(1);
	at = mmap(NULL, 16 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	at = mmap(at, 8 * PAGE, PROT_READ, MAP_SHARED | MAP_FIXED, fd, 0);
	close(fd);
	if (at == MAP_FAILED || madvise(at, 8 * PAGE, MADV_RANDOM))
		exit(1);
	return at;
}

static void away(char *at)
{
	madvise(at, 8 * PAGE, MADV_DONTNEED);
}

static void *rush(void *at)
{
	long sum = 0;

	for (int i = 0; i < ROUNDS; i++) {
		away(at);
		sum += look((char *)at + 2 * PAGE, 1);
	}
	return (void *)sum;
}

static void threads(char *at)
{
	pthread_t thread[4];
	void *sum;
	long all = 0;

	for (int i = 0; i < 4; i++)
		pthread_create(&thread[i], NULL, rush, at);
	for (int i = 0; i < 4; i++) {
		pthread_join(thread[i], &sum);
		all += (long)sum;
	}
	printf("%ld of %d\n", all, 4 * ROUNDS);
}

static volatile sig_atomic_t signals;

static void count(int signal)
{
	(void)signal;
	signals++;
}

/* Memory whose pages another program should provide, but does not. */
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

static void work(const char *word)
{
	char *at = map();
	struct itimerval often = { { 0, 1000 }, { 0, 1000 } };
	long sum = 0;

	if (!strcmp(word, "look")) {
		away(at);
		sum = look(at + 2 * PAGE, 1);
		away(at);
		sum += look(at + 3 * PAGE - 4, 2);
	} else if (!strcmp(word, "odd")) {
		away(at);
		sum = odd(at + 2 * PAGE, 1);
		away(at);
		sum += odd(at + 3 * PAGE - 4, 2);
	} else if (!strcmp(word, "give")) {
		away(at);
		sum = give(at + 2 * PAGE) - at;
	} else if (!strcmp(word, "fresh")) {
		sum = look(mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), 3);
	} else if (!strcmp(word, "none")) {
		sum = look((char *)16, 4);
	} else if (!strcmp(word, "threads")) {
		threads(at);
		return;
	} else if (!strcmp(word, "signals")) {
		signal(SIGALRM, count);
		setitimer(ITIMER_REAL, &often, NULL);
		while (signals < 50) {
			away(at);
			sum = look(at + 2 * PAGE, 5);
		}
	} else if (!strcmp(word, "unanswered")) {
		sum = look(unanswered(), 6);
	} else if (!strcmp(word, "for-ever")) {
		at = unanswered();
		for (;;)
			sum += look(at, 7);
	}
	printf("%s %ld\n", word, sum);
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		work(argv[i]);
	unlink(file);
	return 0;
}
