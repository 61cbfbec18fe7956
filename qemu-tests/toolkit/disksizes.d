#!/usr/sbin/dtrace -s
/*
 * SPDX-FileCopyrightText: The DTrace for Linux authors
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * disksizes.d: the sizes of a command's transfers, by process and direction.
 */

#pragma D option quiet

io:::start
/pid == $target/
{
	this->size = args[0]->b_bcount;
	args[0]->b_flags & B_READ ? @reads["read"] = quantize(this->size) :
	    (@writes["written"] = quantize(this->size));
	@[args[0]->b_flags & B_READ ? "read" : "written"] = sum(this->size);
}

dtrace:::END
{
	printa(@reads);
	printa(@writes);
	printa("%s %@d\n", @);
}
