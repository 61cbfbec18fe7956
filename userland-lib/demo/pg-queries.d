#!/usr/sbin/dtrace -s
/*
 * SPDX-FileCopyrightText: The DTrace for Linux authors
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Queries of PostgreSQL servers with their duration, and the durations of the steps of queries.
 * Servers that start later are traced, too.
 */

#pragma D option quiet
#pragma D option temporal
#pragma D option zdefs
#pragma D option strsize=1k

postgresql*:::query-start
{
	self->began = timestamp;
	self->text = copyinstr(arg0);
}

postgresql*:::query-parse-start,
postgresql*:::query-rewrite-start,
postgresql*:::query-plan-start,
postgresql*:::query-execute-start
/self->began/
{
	self->step = timestamp;
}

postgresql*:::query-parse-done,
postgresql*:::query-rewrite-done,
postgresql*:::query-plan-done,
postgresql*:::query-execute-done
/self->step/
{
	@steps[probename] = quantize(timestamp - self->step);
	self->step = 0;
}

postgresql*:::query-done
/self->began/
{
	printf("%6d %12d  %s\n", pid, timestamp - self->began, self->text);
	@queries[self->text] = count();
	@nanos[self->text] = avg(timestamp - self->began);
	self->began = 0;
	self->text = 0;
}

dtrace:::BEGIN
{
	printf("%6s %12s  %s\n", "PID", "NANOSECONDS", "QUERY");
}

dtrace:::END
{
	printf("\n%8s %12s  %s\n", "COUNT", "NANOSECONDS", "QUERY");
	printa("%@8d %@12d  %s\n", @queries, @nanos);
	printa(@steps);
}
