#!/usr/sbin/dtrace -s
/*
 * SPDX-FileCopyrightText: The DTrace for Linux authors
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * The 10 kernel stacks that occur most often, sampled 97 times a second.
 */

#pragma D option quiet

profile:::profile-97
/arg0/
{
	@stacks[stack()] = count();
}

dtrace:::END
{
	trunc(@stacks, 10);
	printa("%k%@16d\n", @stacks);
}
