/* SPDX-License-Identifier: GPL-2.0-only */
/* SPDX-FileCopyrightText: The DTrace for Linux authors */

#pragma D option quiet
#pragma D option nspec=many

BEGIN
{
	exit(0);
}
