// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0
//
// A program with type information in the short form (CTF).
// @gcc: -O1 -gctf -rdynamic

enum colour { RED, GREEN = 7 };
struct point {
	int x : 3, y : 13;
	const char *name;
	struct point *next;
};

__attribute__((noipa)) long area(const struct point *at, enum colour colour, short scale)
{
	return at->x + at->y + colour + scale;
}

int main(void)
{
	struct point last = { .x = 1, .y = 1000, .name = "the last" };
	struct point first = { .x = -3, .y = -4, .name = "the first", .next = &last };

	return area(&first, GREEN, -1) != -1;
}
