// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

/*
 * @gcc: -g -m32 -nostdlib -static -fno-pie -no-pie -fno-stack-protector -fcf-protection=none
 * A 32-bit program without a C library.
 */

#define FUNCTION __attribute__((noipa, noinline))

FUNCTION int sum8(int a, int b, int c, int d, int e, int f, int g, int h)
{
	return a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + 8 * h;
}

/* Its result takes two registers. */
FUNCTION long long wide(long long n)
{
	return n << 32 | 7;
}

/* Its floating-point argument is a word on the stack. */
FUNCTION int scaled(int n, float by, int more)
{
	return (int)((float)n * by) + more;
}

FUNCTION int work(void)
{
	if (scaled(8, 2.25f, 3) != 21)
		return 0;
	return sum8(1, 2, 3, 4, 5, 6, 7, -8) + (int)(wide(5) >> 32);
}

static int call(int number, int a, int b, int c)
{
	int value;

	__asm__ volatile("int $0x80" : "=a"(value) : "a"(number), "b"(a), "c"(b), "d"(c) : "memory");
	return value;
}

void _start(void)
{
	static const char text[] = "worked\n";

	call(4, 1, (int)text, sizeof(text) - 1);
	call(1, work() != 81, 0, 0);
	for (;;)
		;
}
