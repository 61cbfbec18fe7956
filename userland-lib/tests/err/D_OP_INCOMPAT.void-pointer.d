/* SPDX-License-Identifier: GPL-2.0-only */
/* SPDX-FileCopyrightText: The DTrace for Linux authors */

void *p;
BEGIN
{
	trace(p + 1);
}
