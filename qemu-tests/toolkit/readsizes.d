#!/usr/sbin/dtrace -s
/*
 * SPDX-FileCopyrightText: The DTrace for Linux authors
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * readsizes.d: the sizes of a command's reads and writes. Uses variables initialized with 0.
 */

#pragma D option quiet

dtrace:::BEGIN
{
	total = 0;
	largest = 0;
}

syscall::read:return,
syscall::write:return
/pid == $target && errno == 0/
{
	total += arg0;
	largest = arg0 > largest ? arg0 : largest;
	@sizes[probefunc] = quantize(arg0);
	@[probefunc] = count();
}

dtrace:::END
{
	printf("%d bytes, at most %d at once\n", total, largest);
	printa("%s %@d\n", @);
	printa("%s %@d\n", @sizes);
}
