#!/usr/sbin/dtrace -s
/*
 * SPDX-FileCopyrightText: The DTrace for Linux authors
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Garbage collections of Python programs: generation, duration, and number of collected objects.
 * Programs that start later are traced, too.
 */

#pragma D option quiet
#pragma D option temporal
#pragma D option zdefs

dtrace:::BEGIN
{
	printf("%6s %-16s %10s %12s %8s\n", "PID", "COMM", "GENERATION", "NANOSECONDS", "OBJECTS");
}

python*:::gc-start
{
	self->began = timestamp;
	self->generation = (int)arg0;
}

python*:::gc-done
/self->began/
{
	printf("%6d %-16s %10d %12d %8d\n", pid, execname, self->generation, timestamp - self->began, (int)arg0);
	self->began = 0;
}
