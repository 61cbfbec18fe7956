#!/usr/sbin/dtrace -s
/*
 * SPDX-FileCopyrightText: The DTrace for Linux authors
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Sizes of the requests to block devices, by the process that was running when they were issued.
 */

#pragma D option quiet

sdt:::block_rq_issue
{
	@size[pid, execname] = quantize(((struct request *)arg0)->__data_len);
}

dtrace:::END
{
	printa("%6d %s\n%@d\n", @size);
}
