#!/usr/sbin/dtrace -s
/*
 * SPDX-FileCopyrightText: The DTrace for Linux authors
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Relative times for which programs request to sleep, in milliseconds.
 */

#pragma D option quiet

syscall::nanosleep:entry
{
	this->seconds = *(int64_t *)copyin(arg0, 8);
	this->nanos = *(int64_t *)copyin(arg0 + 8, 8);
	@millis[execname] = quantize(this->seconds * 1000 + this->nanos / 1000000);
}

syscall::clock_nanosleep:entry
/arg1 == 0/
{
	this->seconds = *(int64_t *)copyin(arg2, 8);
	this->nanos = *(int64_t *)copyin(arg2 + 8, 8);
	@millis[execname] = quantize(this->seconds * 1000 + this->nanos / 1000000);
}
