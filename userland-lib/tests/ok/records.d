/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* SPDX-FileCopyrightText: The DTrace for Linux authors */

struct point { int x; unsigned f : 3; short y; };
struct point p;

BEGIN
{
	p.x = 1;
	p.f = 5;
	q = p;
	this->r = (struct point *)alloca(sizeof (struct point));
	this->r->y = p.y;
	trace(p);
}
