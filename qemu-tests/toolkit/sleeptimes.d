#!/usr/sbin/dtrace -s
/*
 * SPDX-FileCopyrightText: The DTrace for Linux authors
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * sleeptimes.d: how long a command's sleeps last. The variables are initialized with 0.
 */

#pragma D option quiet

dtrace:::BEGIN
{
	shortest = 0;
	longest = 0;
	all = 0;
}

syscall::*nanosleep:entry
/pid == $target/
{
	self->since = timestamp;
}

syscall::*nanosleep:return
/self->since/
{
	this->slept = timestamp - self->since;
	longest = this->slept > longest ? this->slept : longest;
	shortest = !shortest || this->slept < shortest ? this->slept : shortest;
	all += this->slept;
	@ = llquantize(this->slept, 10, 6, 9, 10);
	@n = count();
	self->since = 0;
}

dtrace:::END
{
	printa("%@d sleeps\n", @n);
	printf("%d <= %d <= %d\n", shortest, longest, all);
}
