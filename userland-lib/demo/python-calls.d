#!/usr/sbin/dtrace -s
/*
 * SPDX-FileCopyrightText: The DTrace for Linux authors
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Number of calls of the functions of a program of Python 3.13 (-c or -p). Start the program with
 * python3 -X perf: otherwise one call of the evaluator executes many functions. Each resumption of
 * a generator counts as a call. The evaluator's second argument is a frame, which begins with a
 * pointer to its code object.
 */

#pragma D option quiet

pid$target::_PyEval_EvalFrameDefault:entry
{
	this->code = *(uint64_t *)copyin(arg1, 8);
	this->file = *(uint64_t *)copyin(this->code + 112, 8);
	this->name = *(uint64_t *)copyin(this->code + 128, 8);
	@calls[copyinstr(this->name + 40), copyinstr(this->file + 40)] = count();
}

dtrace:::END
{
	printf("%8s  %-40s %s\n", "COUNT", "FUNCTION", "FILE");
	printa("%@8d  %-40s %s\n", @calls);
}
