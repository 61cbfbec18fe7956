#!/usr/sbin/dtrace -s
/*
 * SPDX-FileCopyrightText: The DTrace for Linux authors
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Sizes of the memory blocks that a process (-c or -p) requests from the C library, and number and
 * bytes by caller.
 */

#pragma D option quiet

pid$target::malloc:entry
{
	@sizes["malloc"] = quantize(arg0);
	@calls[ucaller] = count();
	@bytes[ucaller] = sum(arg0);
}

pid$target::calloc:entry
{
	@sizes["calloc"] = quantize(arg0 * arg1);
	@calls[ucaller] = count();
	@bytes[ucaller] = sum(arg0 * arg1);
}

/* realloc(NULL, size) calls malloc(), which counts it. */
pid$target::realloc:entry
/arg0/
{
	@sizes["realloc"] = quantize(arg1);
	@calls[ucaller] = count();
	@bytes[ucaller] = sum(arg1);
}

dtrace:::END
{
	printa(@sizes);
	printf("%8s %12s  %s\n", "COUNT", "BYTES", "CALLER");
	printa("%@8d %@12d  %A\n", @calls, @bytes);
}
