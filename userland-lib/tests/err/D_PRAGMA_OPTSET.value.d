/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* SPDX-FileCopyrightText: The DTrace for Linux authors */

#pragma D option quiet
#pragma D option nspec=many

BEGIN
{
	exit(0);
}
