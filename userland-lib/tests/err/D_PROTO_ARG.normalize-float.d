/* SPDX-License-Identifier: GPL-2.0-only */
/* SPDX-FileCopyrightText: The DTrace for Linux authors */

BEGIN
{
	@total = sum(0.5);
	normalize(@total, 0.5);
}
