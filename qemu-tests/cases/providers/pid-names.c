// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

/*
 * Calls functions, each once, whose names a case changes in the file: their digits stand for
 * bytes that C does not allow in names. With an argument it waits for ever.
 */

#include <stdio.h>
#include <unistd.h>

#define FUNCTION __attribute__((noipa, noinline))

FUNCTION long clears_12J(long n) { return n + 1; }
FUNCTION long title_3(long n) { return n + 1; }
FUNCTION long two_4lines(long n) { return n + 1; }
FUNCTION long turns_555(long n) { return n + 1; }
FUNCTION long type_6eq(long n) { return n + 1; }
FUNCTION long operator_7(long n) { return n + 1; }
FUNCTION long gr_8899e(long n) { return n + 1; }
FUNCTION long latin_0(long n) { return n + 1; }

int main(int argc, char **argv)
{
	(void)argv;
	if (argc > 1)
		pause();
	long n = clears_12J(argc);

	n = title_3(n);
	n = two_4lines(n);
	n = turns_555(n);
	n = type_6eq(n);
	n = operator_7(n);
	n = gr_8899e(n);
	n = latin_0(n);
	printf("%ld\n", n);
	return 0;
}
