/* SPDX-License-Identifier: GPL-2.0-only */
/* SPDX-FileCopyrightText: The DTrace for Linux authors */

int a[3], b[3];
BEGIN
{
	a = b;
}
