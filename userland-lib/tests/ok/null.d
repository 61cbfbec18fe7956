/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* SPDX-FileCopyrightText: The DTrace for Linux authors */

struct pair {
	int a, b;
};
self struct pair kept;
struct pair pairs[int];

BEGIN
/later != 0 && text != 0/
{
	text = "a";
	text = 0;
	later = 1;
	self->kept = 0;
	pairs[1] = 0;
	*(int *)0;
}
