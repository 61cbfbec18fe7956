#!/usr/sbin/dtrace -s
/*
 * SPDX-FileCopyrightText: The DTrace for Linux authors
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * threadlife.d: threads of a command from their start to their end.
 */

#pragma D option quiet

dtrace:::BEGIN
{
	running = 0;
	most = 0;
}

proc:::lwp-start
/pid == $target && tid != pid/
{
	self->since = timestamp;
	running++;
	most = running > most ? running : most;
}

proc:::lwp-exit
/self->since/
{
	self->since ? @lived = avg(timestamp - self->since) : 1;
	@ended = count();
	self->since = 0;
	running--;
}

dtrace:::END
{
	printa("%@d threads", @ended);
	printf(", %d at once at most, %d left\n", most, running);
	printa("lived for %@d ns\n", @lived);
}
