#!/usr/sbin/dtrace -s
/*
 * SPDX-FileCopyrightText: The DTrace for Linux authors
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Memory that a process (-c or -p) has allocated from the C library during tracing and has not
 * freed, by caller.
 */

#pragma D option quiet
#pragma D option dynvarsize=16m

/* By address of each block in use: its size and its caller. */
uint64_t bytes[uint64_t];
uint64_t who[uint64_t];

pid$target::malloc:entry
{
	self->size = arg0;
	self->by = ucaller;
}

pid$target::calloc:entry
{
	self->size = arg0 * arg1;
	self->by = ucaller;
}

/* realloc(NULL, size) calls malloc(), which counts it. */
pid$target::realloc:entry
/arg0/
{
	self->size = arg1;
	self->by = ucaller;
	self->old = arg0;
}

pid$target::realloc:return
{
	this->given_back = arg1 ? self->old : 0;
}

pid$target::free:entry
{
	this->given_back = arg0;
}

pid$target::realloc:return,
pid$target::free:entry
/bytes[this->given_back]/
{
	@pieces[who[this->given_back]] = sum(-1);
	@kept[who[this->given_back]] = sum(-bytes[this->given_back]);
	bytes[this->given_back] = 0;
	who[this->given_back] = 0;
}

pid$target::malloc:return,
pid$target::calloc:return,
pid$target::realloc:return
/self->size && arg1/
{
	bytes[arg1] = self->size;
	who[arg1] = self->by;
	@pieces[self->by] = sum(1);
	@kept[self->by] = sum(self->size);
}

pid$target::malloc:return,
pid$target::calloc:return,
pid$target::realloc:return
{
	self->size = 0;
	self->by = 0;
	self->old = 0;
}

dtrace:::END
{
	printf("%8s %12s  %s\n", "PIECES", "BYTES", "CALLER");
	printa("%@8d %@12d  %A\n", @pieces, @kept);
}
