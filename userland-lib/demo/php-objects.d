#!/usr/sbin/dtrace -s
/*
 * SPDX-FileCopyrightText: The DTrace for Linux authors
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Objects that a PHP program (-c or -p) creates, by class; files that it compiles; and its garbage
 * collections. PHP has no USDT probes for this, so the script traces functions of the Zend engine.
 * A class has its name at offset 8, a string its text at offset 24, and a file handle its name at
 * offset 40.
 */

#pragma D option quiet

pid$target::zend_objects_new:entry
{
	@objects[copyinstr(*(uint64_t *)copyin(arg0 + 8, 8) + 24)] = count();
}

pid$target::compile_file:entry
{
	self->began = timestamp;
	self->handle = arg0;
}

pid$target::compile_file:return
/self->began/
{
	this->name = *(uint64_t *)copyin(self->handle + 40, 8);
	printf("%12d  %s\n", timestamp - self->began, this->name ? copyinstr(this->name + 24) : "");
	self->began = 0;
}

pid$target::zend_gc_collect_cycles:entry
{
	self->collects = timestamp;
}

pid$target::zend_gc_collect_cycles:return
/self->collects/
{
	@collected = sum((int)arg1);
	@collections = quantize(timestamp - self->collects);
	self->collects = 0;
}

dtrace:::BEGIN
{
	printf("%12s  %s\n", "NANOSECONDS", "COMPILED");
}

dtrace:::END
{
	printf("\n%8s  %s\n", "COUNT", "CLASS");
	printa("%@8d  %s\n", @objects);
	printa("\ncollected: %@d\n", @collected);
	printa("\ncollections, nanoseconds%@d\n", @collections);
}
