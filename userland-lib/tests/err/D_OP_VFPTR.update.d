/* SPDX-License-Identifier: GPL-2.0-only */
/* SPDX-FileCopyrightText: The DTrace for Linux authors */

BEGIN
{
	p = 1;
	p += alloca(1);
}
