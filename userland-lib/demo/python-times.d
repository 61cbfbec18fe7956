#!/usr/sbin/dtrace -s
/*
 * SPDX-FileCopyrightText: The DTrace for Linux authors
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Total time of the functions of a program of Python 3.13 (-c or -p), with and without the
 * functions that they call. Start the program with python3 -X perf. Times are in nanoseconds.
 */

#pragma D option quiet
#pragma D option dynvarsize=16m

pid$target::_PyEval_EvalFrameDefault:entry
{
	this->code = *(uint64_t *)copyin(arg1, 8);
	self->depth++;
	self->name[self->depth] = copyinstr(*(uint64_t *)copyin(this->code + 128, 8) + 40);
	self->stack[self->depth] = uregs[R_SP];
	self->began[self->depth] = timestamp;
	self->called[self->depth] = 0;
}

pid$target::_PyEval_EvalFrameDefault:return
/self->depth && uregs[R_SP] > self->stack[self->depth]/
{
	this->whole = timestamp - self->began[self->depth];
	@calls[self->name[self->depth]] = count();
	@whole[self->name[self->depth]] = sum(this->whole);
	@own[self->name[self->depth]] = sum(this->whole - self->called[self->depth]);
	self->name[self->depth] = 0;
	self->stack[self->depth] = 0;
	self->began[self->depth] = 0;
	self->called[self->depth] = 0;
	self->depth--;
	self->called[self->depth] += this->whole;
}

dtrace:::END
{
	printf("%8s %14s %14s  %s\n", "COUNT", "WHOLE", "OWN", "FUNCTION");
	printa("%@8d %@14d %@14d  %s\n", @calls, @whole, @own);
}
