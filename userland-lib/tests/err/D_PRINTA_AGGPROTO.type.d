/* SPDX-License-Identifier: GPL-2.0-only */
/* SPDX-FileCopyrightText: The DTrace for Linux authors */

BEGIN
{
	@a[1] = count();
	@b[execname] = count();
	printa(@a, @b);
}
