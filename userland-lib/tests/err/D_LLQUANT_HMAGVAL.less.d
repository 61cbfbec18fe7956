/* SPDX-License-Identifier: GPL-2.0-only */
/* SPDX-FileCopyrightText: The DTrace for Linux authors */

BEGIN
{
	@ = llquantize(arg0, 10, 5, 4, 20);
}
