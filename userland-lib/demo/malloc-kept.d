#!/usr/sbin/dtrace -s
/*
 * SPDX-FileCopyrightText: The DTrace for Linux authors
 * SPDX-License-Identifier: GPL-2.0-only
 *
 * Memory that a process (-c or -p) has got from the C library while this ran and has not given back, by who asked for it.
 */

#pragma D option quiet
#pragma D option dynvarsize=16m

/* Of the pieces that are in use. */
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

/* Of nothing, it is malloc(), which realloc() calls. */
pid$target::realloc:entry
/arg0/
{
	self->size = arg1;
	self->by = ucaller;
	self->old = arg0;
}

pid$target::realloc:return
/self->old && arg1 && bytes[self->old]/
{
	@pieces[who[self->old]] = sum(-1);
	@kept[who[self->old]] = sum(-bytes[self->old]);
	bytes[self->old] = 0;
	who[self->old] = 0;
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

pid$target::free:entry
/bytes[arg0]/
{
	@pieces[who[arg0]] = sum(-1);
	@kept[who[arg0]] = sum(-bytes[arg0]);
	bytes[arg0] = 0;
	who[arg0] = 0;
}

dtrace:::END
{
	printf("%8s %12s  %s\n", "PIECES", "BYTES", "CALLER");
	printa("%@8d %@12d  %A\n", @pieces, @kept);
}
