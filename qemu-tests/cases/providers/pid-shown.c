// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

/*
 * @gcc: -no-pie
 * A program with an instruction that can only be executed out of line: pid-shown WORD... `where`
 * prints its address.
 */

#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>

#include "wait-word.h"

/* Loads from an address. */
void loads(const void *at);
__asm__(".text\n.globl loads\n.type loads, @function\nloads:\n"
	"	movups (%rdi), %xmm0\n"
	"	ret\n"
	".size loads, .-loads\n");

int main(int argc, char **argv)
{
	static const char text[16];

	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "where"))
			printf("%lx\n", (long)loads);
		else if (!strcmp(argv[i], "wait"))
			wait_for_signal();
		else if (!strcmp(argv[i], "load"))
			loads(text);
		else if (!strcmp(argv[i], "fault"))
			loads(NULL);
		/* From now on nothing can be made executable. */
		else if (!strcmp(argv[i], "mdwe"))
			printf("mdwe %d\n", prctl(65 /* PR_SET_MDWE */, 1 /* PR_MDWE_REFUSE_EXEC_GAIN */, 0, 0, 0));
		fflush(stdout);
	}
	return 0;
}
