#!/usr/sbin/dtrace -s
/*
 * SPDX-FileCopyrightText: The DTrace for Linux authors
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Sizes of the buffers that programs write, by program.
 */

#pragma D option quiet

syscall::write:entry,
syscall::pwrite64:entry
{
	@size[execname] = quantize(arg2);
}
