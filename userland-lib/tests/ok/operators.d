/* SPDX-License-Identifier: MIT OR Apache-2.0 */
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
