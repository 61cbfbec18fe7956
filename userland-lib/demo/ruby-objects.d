#!/usr/sbin/dtrace -s
/*
 * SPDX-FileCopyrightText: The DTrace for Linux authors
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Objects that a program of Ruby 3.3 (-c or -p) creates by `new`, by class. Debian's ruby has no
 * USDT probes, so the script traces a function whose third argument is the class. A class has its
 * name, a string, at offset 152. Short strings are stored in their object.
 */

#pragma D option quiet

pid$target::rb_class_new_instance_pass_kw:entry
{
	this->name = *(uint64_t *)copyin(arg2 + 152, 8);
	this->is_named = this->name > 8;
}

pid$target::rb_class_new_instance_pass_kw:entry
/this->is_named/
{
	this->is_long = *(uint64_t *)copyin(this->name, 8) & 0x2000;
	this->length = *(uint64_t *)copyin(this->name + 16, 8);
	this->text = this->is_long ? *(uint64_t *)copyin(this->name + 24, 8) : this->name + 24;
	@objects[copyinstr(this->text, this->length + 1)] = count();
}

dtrace:::END
{
	printf("%8s  %s\n", "COUNT", "CLASS");
	printa("%@8d  %s\n", @objects);
}
