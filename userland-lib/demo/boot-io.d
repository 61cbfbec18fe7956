#!/usr/sbin/dtrace -s
/*
 * SPDX-FileCopyrightText: The DTrace for Linux authors
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Requests to block devices during boot: time, process, sector and size; and the sum of bytes by
 * program. Run the first command to trace the next boot, and the second one after the boot:
 *
 *	dtrace -A -s boot-io.d
 *	dtrace -ae
 */

#pragma D option quiet
#pragma D option bufpolicy=fill

dtrace:::BEGIN
{
	start = timestamp;
	printf("%12s %6s %-16s %12s %8s\n", "MICROS", "PID", "BY", "SECTOR", "BYTES");
}

sdt:::block_rq_issue
{
	this->bytes = ((struct request *)arg0)->__data_len;
	printf("%12d %6d %-16s %12d %8d\n", (timestamp - start) / 1000, pid, execname,
	    ((struct request *)arg0)->__sector, this->bytes);
	@bytes[execname] = sum(this->bytes);
}
