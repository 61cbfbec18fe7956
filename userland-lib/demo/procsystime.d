#!/usr/sbin/dtrace -s
/*
 * SPDX-FileCopyrightText: The DTrace for Linux authors
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Time spent in system calls and number of calls, of one process or of all processes: procsystime.d
 * [PID].
 */

#pragma D option quiet
#pragma D option defaultargs

syscall:::entry
/pid != $pid && ($1 == 0 || pid == $1)/
{
	self->start = timestamp;
}

syscall:::return
/self->start/
{
	@time[probefunc] = sum(timestamp - self->start);
	@calls[probefunc] = count();
	@total["total"] = sum(timestamp - self->start);
	self->start = 0;
}

dtrace:::END
{
	normalize(@time, 1000);
	normalize(@total, 1000);
	printf("%-24s %12s %10s\n", "CALL", "MICROS", "CALLS");
	printa("%-24s %@12d %@10d\n", @time, @calls);
	printa("%-24s %@12d\n", @total);
}
