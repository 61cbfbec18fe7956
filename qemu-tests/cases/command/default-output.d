/*
 * SPDX-FileCopyrightText: The DTrace for Linux authors
 * SPDX-License-Identifier: MIT OR Apache-2.0
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
