/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* SPDX-FileCopyrightText: The DTrace for Linux authors */

struct in { int i; };
struct out { int a, b; };
translator struct out < struct in *p > { a = p->i; };
struct in *p;
BEGIN
{
	trace(xlate <struct out *> (p)->b);
}
