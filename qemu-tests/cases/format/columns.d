/*
 * SPDX-FileCopyrightText: The DTrace for Linux authors
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * trace() has a column for each size and sign.
 */

BEGIN
{
	trace((int8_t)-1);
	trace((uint16_t)-1);
	trace((int32_t)-1);
	trace((int64_t)-1);
	trace((uint64_t)-1);
	exit(0);
}
