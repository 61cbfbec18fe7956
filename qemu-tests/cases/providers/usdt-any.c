// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

/* A program whose probes have no definition, with arguments of each kind of type. */

#include <stddef.h>

#include "../../../userland-lib/include/dtrace/sys/sdt.h"

int number = -6;
static char text[] = "text";
static const char constant[] = "constant";
enum colour { RED, GREEN };

int main(int argc, char **argv)
{
	unsigned char byte = 250;
	short narrow = -7;

	(void)argv;
	/* Touches the page of the constants so that it is present when the probes fire. */
	narrow -= *(volatile const char *)constant - 'c';
	DTRACE_PROBE(any, nothing);
	DTRACE_PROBE4(any, numbers, number, byte, narrow, -1LL);
	DTRACE_PROBE4(any, pointers, text, constant, NULL, main);
	DTRACE_PROBE3(any, other__kinds, GREEN, argc == 1, (size_t)argc);
	DTRACE_PROBE12(any, many, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12);
	return 0;
}
