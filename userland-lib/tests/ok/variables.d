/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* SPDX-FileCopyrightText: The DTrace for Linux authors */

int g;
self int t;
this char c;
int table[int, string];

BEGIN
{
	g += 5;
	self->t--;
	this->c = g;
	table[g, "x"]++;
	table[1, execname] = g;
	self->names[pid] = execname;
}
