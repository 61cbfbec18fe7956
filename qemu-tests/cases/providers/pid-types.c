// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

/*
 * @gcc: -g
 * A program with type and line information. The case of the same name names line numbers here.
 */

#include <unistd.h>

#define FUNCTION __attribute__((noipa, noinline))

enum colour { RED, GREEN = 7 };

struct point {
	int x, y;
	const char *name;
	unsigned int low : 3, high : 5;
	struct point *next;
};

struct pair {
	long first, second;
};

FUNCTION long area(const struct point *at, double scale, enum colour colour, signed char step)
{
	return at->x * at->y * (long)scale + colour + step;
}

FUNCTION struct point *next(struct point *at)
{
	return at->next;
}

FUNCTION double half(double of)
{
	return of / 2;
}

FUNCTION struct pair both(struct pair of, long more)
{
	return (struct pair){ of.second + more, of.first };
}

static inline __attribute__((always_inline)) void mark(void)
{
	__asm__ volatile("nop"); /* line 48 */
}

FUNCTION void first(void)
{
	mark();
}

FUNCTION void second(int n)
{
	while (n-- > 0)
		mark();
}

typedef struct pair twins;

/* Eight are in registers, the others on the stack. */
FUNCTION float mean(float a, double b, int n, double c, double d, double e, double f, float g, float h, double i, int m, float j)
{
	return (a + b + c + d + e + f + g + h + i + j) / n + m;
}

/* Its float is passed as a double. */
FUNCTION int old(a, b, n) double a; float b; int n;
{
	return a + b + n;
}

FUNCTION long double precise(long double of)
{
	return of;
}

int main(void)
{
	struct point last = { 5, 6, "the last", 1, 2, 0 };
	struct point origin = { 3, -4, "the origin", 6, 17, &last };
	twins pair = { 1, 2 };

	area(&origin, 2, GREEN, -1);
	next(&origin);
	half(1.5);
	mean(-1.5f, 2.25, 10, 3, 4, 5, 6, 7, 8, 9.75, 100, -0.5f);
	old(1.5, 2.5, 3);
	precise(1);
	both(pair, 3);
	first();
	second(3);
	return 0;
}
