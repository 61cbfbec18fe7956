/*
 * SPDX-FileCopyrightText: The DTrace for Linux authors
 * SPDX-License-Identifier: GPL-2.0-only
 *
 * The header, a line for each probe, values in their columns, an empty line at the end.
 */

BEGIN
{
	trace(42);
	trace("hello");
	exit(0);
}

END
{
}
