// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

/*
 * @musl-gcc: -shared -fPIC
 * A library that is loaded late, for musl libc.
 */

__attribute__((noipa, noinline)) long greet(long n)
{
	return n + 1;
}

__attribute__((constructor)) static void begin(void)
{
	greet(100);
}
