/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* SPDX-FileCopyrightText: The DTrace for Linux authors */

/* Floating-point numbers: constants, what is folded, and the operations of the machine. */

float f;
double d;

BEGIN
{
	d = 0x1.8p1 + .5e1 * 2;
	f = d / 3 - 1;
	d = arg0 * 2.5f;
	i = (int)-d;
}

BEGIN
/d > f && !(d >= 2 * f)/
{
	u = (unsigned long)(f != d ? d : f);
	d -= (unsigned long)arg1;
	f++;
}

long double l;

BEGIN
{
	l = -l * 2 + arg0;
	d = l > 1.5L ? l : d;
	@[l] = sum(f);
	@max = max(l);
	@steps = quantize(d, 2.5);
}
