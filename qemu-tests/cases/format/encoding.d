/*
 * SPDX-FileCopyrightText: The DTrace for Linux authors
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Bars of UTF-8 end in eighths of a character.
 */
#pragma D option quiet
#pragma D option encoding=utf8

BEGIN
{
	@["quantize"] = quantize(1, 96);
	@["quantize"] = quantize(2, 3);
	@["quantize"] = quantize(4, 221);
	exit(0);
}
