/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* SPDX-FileCopyrightText: The DTrace for Linux authors */

extern int open[];
extern char closed[4][8];
int f(void), g(int, char *, ...);
self x, y;
this z;
self int *p, n[3];
int const extern late;
unsigned long int longs[int, string];
int (*handlers[2])(int, void *);
enum colour {
	RED,
	GREEN = 5 + 5,
	BLUE = GREEN + RED - 1,
	LEAST = -2,
	NEXT
};
union both {
	struct {
		short low, high;
	};
	int whole;
};
union both w;

BEGIN
{
	self->x = 1;
	this->z = self->x + self->y;
	longs[BLUE, "a"] = NEXT;
	w.whole = 0x10002;
	trace(w.high);
	trace(this->z);
}
