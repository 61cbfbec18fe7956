// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

/*
 * Usage: usdt-work [WORD...]. A program with USDT probes. Each word names a piece of work.
 */

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "usdt-site.h"
#include "wait-word.h"

unsigned short wanted __attribute__((section(".probes"), used, visibility("hidden")));
int counter __attribute__((used)) = -7;
static const char greeting[] = "hello";

void ways(long n, const char *text, int *list);
__asm__(".text\n.globl ways\n.type ways, @function\nways:\n"
	"	push %rbp\n"
	"	mov %rsp, %rbp\n"
	"	sub $32, %rsp\n"
	"	movw $-2, -8(%rbp)\n"
	"	mov $3, %ecx\n"
	"	mov $0x1234, %eax\n"
	"	movabs $0x3ff8000000000000, %r11\n"
	"	movq %r11, %xmm0\n"
	SITE("work", "registers", "8@%rdi -4@%edi 1@%al 1@%ah -1@%dil 8@%rsi", "0")
	SITE("work", "memory", "-2@-8(%rbp) 2@-8(%rbp) -4@(%rdx,%rcx,4) -4@4(%rdx) -4@counter(%rip) -4@4+list(%rip)", "0")
	SITE("work", "others", "-4@$-5 8@$0x10 8f@%xmm0 8@nonesuch(%rip)", "0")
	"	leave\n"
	"	ret\n"
	".size ways, .-ways\n"
	".data\n.globl list\n.type list, @object\nlist:	.long 10, 20, 30, 40\n.size list, 16\n.text\n");
extern int list[];

/* The first argument of the probe is in memory at an arbitrary address; the second identifies
 * the call. */
__attribute__((noipa)) static void far(long *at, long which)
{
	__asm__ volatile(SITE("work", "far", "8@(%0) 8@%1", "0") : : "D"(at), "S"(which));
}

/* Arguments on a page that is present, on one that is not present yet, and at an address that is
 * never mapped. */
static void far_ways(void)
{
	static long here = 7;

	far(&here, 1);
	far(mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), 2);
	far((long *)16, 3);
	far(&here, 4);
}

/* Waits until the probe of tell() is enabled, at most one minute. */
static void await_asked(void)
{
	for (int n = 0; n < 6000 && !*(volatile unsigned short *)&wanted; n++)
		usleep(10000);
}

/* Counts its runs and fires the probe, only while the probe is enabled; from two sites. */
long told;
__attribute__((noipa)) static void tell(long n)
{
	if (!wanted)
		return;
	told++;
	if (n & 1)
		__asm__ volatile(SITE("work", "said__it", "8@%0", "wanted") : : "r"(n));
	else
		__asm__ volatile(SITE("work", "said__it", "8@%0", "wanted") : : "m"(n));
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		const char *word = argv[i];

		if (!strcmp(word, "ways")) {
			ways(-3, greeting, list);
		} else if (!strcmp(word, "far")) {
			far_ways();
		} else if (!strcmp(word, "tell")) {
			for (long n = 1; n <= 10; n++)
				tell(n);
			printf("told %ld, wanted %d\n", told, wanted);
			told = 0;
		} else if (!strcmp(word, "fork")) {
			int status;

			fflush(stdout);
			if (!fork()) {
				tell(1);
				_exit(0);
			}
			wait(&status);
			printf("fork %d\n", status);
		} else if (!strcmp(word, "exec")) {
			/* Executes the remaining words as another program in the same process. */
			fflush(stdout);
			execvp(argv[0], argv + i);
			_exit(1);
		} else if (!strcmp(word, "asked")) {
			await_asked();
		} else if (!strcmp(word, "wait")) {
			wait_for_signal();
		}
		fflush(stdout);
	}
	return 0;
}
