/* SPDX-License-Identifier: GPL-2.0-only */
/* SPDX-FileCopyrightText: The DTrace for Linux authors */

BEGIN
{
	trace(x = arg0 + 1);
	trace(x << 3 | x >> 2 & ~x ^ -x);
	trace((char)x < (unsigned char)x);
	trace(x ? "yes" : "no");
	trace(!x && (x > 3 ^^ x < 5));
	trace((unsigned int)x / 3 % 4);
}
