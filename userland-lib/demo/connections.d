#!/usr/sbin/dtrace -s
/*
 * SPDX-FileCopyrightText: The DTrace for Linux authors
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Calls of connect(2) with an IPv4 address: address, port, and error number.
 */

#pragma D option quiet

syscall::connect:entry
/arg2 >= 8/
{
	this->address = (uint16_t *)copyin(arg1, 8);
	self->family = this->address[0];
	self->port = ntohs(this->address[1]);
	self->to = *(uint32_t *)&this->address[2];
}

syscall::connect:return
/self->family == AF_INET/
{
	this->to = (ipaddr_t *)alloca(sizeof (ipaddr_t));
	*this->to = self->to;
	printf("%6d %-16s %s:%d %d\n", pid, execname, inet_ntoa(this->to), self->port, errno);
}

syscall::connect:return
{
	self->family = 0;
	self->port = 0;
	self->to = 0;
}
