/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* SPDX-FileCopyrightText: The DTrace for Linux authors */

struct in {
	int i;
	char c;
} source;
struct out {
	int i;
	char *text;
};
translator struct out < struct in *p >
{
	i = p->i;
};
struct in *p;
BEGIN
{
	trace(*xlate <struct out *> (p));
}
