/* SPDX-License-Identifier: GPL-2.0-only */
/* SPDX-FileCopyrightText: The DTrace for Linux authors */

struct s {
	int a;
	int b : 3;
} var;

BEGIN
{
	trace(sizeof (var.b));
}
