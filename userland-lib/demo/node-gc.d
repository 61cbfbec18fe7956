#!/usr/sbin/dtrace -s
/*
 * SPDX-FileCopyrightText: The DTrace for Linux authors
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Garbage collections of a node program (-c or -p) with their duration. Node has no USDT probes for
 * this, so the script traces a function of V8.
 */

#pragma D option quiet
#pragma D option temporal

dtrace:::BEGIN
{
	printf("%6s %12s\n", "THREAD", "NANOSECONDS");
}

pid$target::_ZN2v88internal4Heap14CollectGarbageE*:entry
{
	self->began = timestamp;
}

pid$target::_ZN2v88internal4Heap14CollectGarbageE*:return
/self->began/
{
	printf("%6d %12d\n", tid, timestamp - self->began);
	@ = quantize(timestamp - self->began);
	self->began = 0;
}
