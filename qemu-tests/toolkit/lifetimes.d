#!/usr/sbin/dtrace -s
/*
 * SPDX-FileCopyrightText: The DTrace for Linux authors
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * lifetimes.d: how long a command's processes live. Start times are kept by process ID.
 */

#pragma D option quiet
#pragma D option dynvarsize=4m

dtrace:::BEGIN
{
	longest = 0;
	ended = 0;
}

proc:::start
/progenyof($target)/
{
	born[pid] = timestamp;
}

proc:::exit
/born[pid]/
{
	this->lived = timestamp - born[pid];
	@["ns"] = quantize(this->lived);
	longest = this->lived > longest ? this->lived : longest;
	ended++;
	born[pid] = 0;
}

dtrace:::END
{
	printf("%d ended; the longest lived %s\n", ended, longest > 1000 ? "as long as one can" : "no time");
	printa(@);
}
