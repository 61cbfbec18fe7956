/*
 * SPDX-FileCopyrightText: The DTrace for Linux authors
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * @args: -q
 * trace() in quiet mode: values by their types, without columns.
 */

BEGIN
{
	trace((int8_t)-1);
	trace(" ");
	trace((uint8_t)-1);
	trace(" ");
	trace((uint32_t)-1);
	trace(" ");
	trace(-1);
	trace(" ");
	trace((uint64_t)-1);
	trace(" ");
	trace("text");
	exit(0);
}
