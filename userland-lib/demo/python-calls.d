#!/usr/sbin/dtrace -s
/*
 * SPDX-FileCopyrightText: The DTrace for Linux authors
 * SPDX-License-Identifier: GPL-2.0-only
 *
 * How often a program of Python 3.13 (-c or -p) calls which functions. It must have been started with python3 -X perf: otherwise one call of
 * the evaluator executes many functions. A generator counts each time that it goes on. The evaluator's second argument is a frame, which
 * begins with its code.
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
