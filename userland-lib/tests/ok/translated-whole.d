/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* SPDX-FileCopyrightText: The DTrace for Linux authors */

struct in {
	int i;
} source;
struct out {
	int i;
	char c;
	int half : 4;
} result;

translator struct out < struct in p >
{
	i = p.i + 1;
	half = p.i / 2;
};

BEGIN
{
	source.i = 4;
	result = xlate <struct out> (source);
}
