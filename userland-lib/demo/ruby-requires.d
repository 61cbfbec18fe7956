#!/usr/sbin/dtrace -s
/*
 * SPDX-FileCopyrightText: The DTrace for Linux authors
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Files that a Ruby program (-c or -p) requires, indented by depth, with the duration. Debian's
 * ruby has no USDT probes, so the script traces a function whose argument is a string. Short
 * strings are stored in their object.
 */

#pragma D option quiet
#pragma D option temporal

dtrace:::BEGIN
{
	printf("%12s  %s\n", "NANOSECONDS", "FILE");
}

pid$target::rb_require_string:entry
{
	this->is_long = *(uint64_t *)copyin(arg0, 8) & 0x2000;
	this->length = *(uint64_t *)copyin(arg0 + 16, 8);
	this->text = this->is_long ? *(uint64_t *)copyin(arg0 + 24, 8) : arg0 + 24;
	self->depth++;
	self->name[self->depth] = copyinstr(this->text, this->length + 1);
	self->began[self->depth] = timestamp;
}

pid$target::rb_require_string:return
/self->depth/
{
	printf("%12d  %*s%s\n", timestamp - self->began[self->depth], self->depth * 2 - 2, "", self->name[self->depth]);
	self->name[self->depth] = 0;
	self->began[self->depth] = 0;
	self->depth--;
}
