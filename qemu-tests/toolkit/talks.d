#!/usr/sbin/dtrace -s
/*
 * SPDX-FileCopyrightText: The DTrace for Linux authors
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * talks.d: connections that a command opens and accepts, and how many bytes it sends.
 */

#pragma D option quiet

tcp:::connect-established
/pid == $target/
{
	@made[args[3]->tcps_raddr, args[3]->tcps_rport] = count();
}

tcp:::accept-established
{
	args[3]->tcps_lport == 4321 ? @accepted[args[3]->tcps_lport] = count() : 1;
}

tcp:::send
/pid == $target && args[2]->ip_plength > args[4]->tcp_offset/
{
	this->size = args[2]->ip_plength - args[4]->tcp_offset;
	args[4]->tcp_dport == 4321 ? @sent["to it"] = sum(this->size) :
	    (@sent["from it"] = sum(this->size));
}

dtrace:::END
{
	printa("connected to %s:%d %@d\n", @made);
	printa("accepted at %d %@d\n", @accepted);
	printa("sent %s %@d\n", @sent);
}
