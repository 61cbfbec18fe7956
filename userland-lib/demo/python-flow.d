#!/usr/sbin/dtrace -s
/*
 * SPDX-FileCopyrightText: The DTrace for Linux authors
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Calls of functions in a program of Python 3.13 (-c or -p), by thread, indented by depth. Start
 * the program with python3 -X perf. An optional argument names the function that begins the trace:
 * python-flow.d Shop.sell.
 *
 * The evaluator has returned only when its stack frame has been popped. It also jumps to its
 * out-of-line part, which fires the return probe as well.
 */

#pragma D option quiet
#pragma D option temporal
#pragma D option defaultargs

self int depth;

pid$target::_PyEval_EvalFrameDefault:entry
{
	this->code = *(uint64_t *)copyin(arg1, 8);
	this->name = copyinstr(*(uint64_t *)copyin(this->code + 128, 8) + 40);
}

pid$target::_PyEval_EvalFrameDefault:entry
/self->depth || $$1 == "" || this->name == $$1/
{
	printf("%6d  %*s-> %s\n", tid, self->depth * 2, "", this->name);
	self->depth++;
	self->name[self->depth] = this->name;
	self->stack[self->depth] = uregs[R_SP];
}

pid$target::_PyEval_EvalFrameDefault:return
/self->depth && uregs[R_SP] > self->stack[self->depth]/
{
	printf("%6d  %*s<- %s\n", tid, self->depth * 2 - 2, "", self->name[self->depth]);
	self->name[self->depth] = 0;
	self->stack[self->depth] = 0;
	self->depth--;
}
