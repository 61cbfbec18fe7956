/*
 * SPDX-FileCopyrightText: The DTrace for Linux authors
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * @args: -q
 * A fault in a clause that records nothing is reported as any other; the address is exact.
 */
BEGIN
{
	i = *(char *)0xdead000000000000;
}

ERROR
{
	printf("fault %d at %x", arg4, arg5);
	exit(0);
}
