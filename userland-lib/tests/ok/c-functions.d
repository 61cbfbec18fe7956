/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* SPDX-FileCopyrightText: The DTrace for Linux authors */

typedef unsigned short half_t;
static inline half_t
swapped (half_t x)
{
	if (x) { return ((half_t) ((((x) >> 8) & 0xff) | (((x) & 0xff) << 8))); }
	return '}' + "}"[0];
}
inline static int f(int a, char *b) { while (a--) { b[a] = 0; } return a; }
extern inline int g(void);
static int h(void);
int k(int x) { return x; }
inline int ONE = 1;

BEGIN
{
	trace(ONE);
}
