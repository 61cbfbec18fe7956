#!/usr/sbin/dtrace -s
/*
 * SPDX-FileCopyrightText: The DTrace for Linux authors
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Requests to block devices: process, sector, size and duration.
 */

#pragma D option quiet

dtrace:::BEGIN
{
	printf("%6s %-16s %12s %8s %10s\n", "PID", "COMM", "SECTOR", "BYTES", "MICROS");
}

sdt:::block_rq_issue
{
	issued[arg0] = timestamp;
	by[arg0] = pid;
	comm[arg0] = execname;
	bytes[arg0] = ((struct request *)arg0)->__data_len;
}

sdt:::block_rq_complete
/issued[arg0]/
{
	printf("%6d %-16s %12d %8d %10d\n", by[arg0], comm[arg0],
	    ((struct request *)arg0)->__sector, bytes[arg0],
	    (timestamp - issued[arg0]) / 1000);
	issued[arg0] = 0;
	by[arg0] = 0;
	comm[arg0] = 0;
	bytes[arg0] = 0;
}
