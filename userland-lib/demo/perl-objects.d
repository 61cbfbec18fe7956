#!/usr/sbin/dtrace -s
/*
 * SPDX-FileCopyrightText: The DTrace for Linux authors
 * SPDX-License-Identifier: GPL-2.0-only
 *
 * The objects that a program of Perl 5.40 (-c or -p) blesses, by package, and from where. Debian's perl has no probes of its own, and exports
 * none of the functions that execute calls. A package has its name, or an array of names, behind 32 bytes of its body; a name its text
 * behind 8 bytes. Where the program is, the interpreter's first argument knows: a line and a file.
 */

#pragma D option quiet

pid$target::Perl_sv_bless:entry
{
	this->body = *(uint64_t *)copyin(arg2, 8);
	this->name = *(uint64_t *)copyin(this->body + 32, 8);
	this->name = *(int *)copyin(this->body + 60, 4) ? *(uint64_t *)copyin(this->name, 8) : this->name;
	this->place = *(uint64_t *)copyin(arg0 + 208, 8);
	@objects[copyinstr(this->name + 8), copyinstr(*(uint64_t *)copyin(this->place + 48, 8)), *(int *)copyin(this->place + 36, 4)] = count();
}

dtrace:::END
{
	printf("%8s  %-30s %s\n", "COUNT", "PACKAGE", "FROM");
	printa("%@8d  %-30s %s:%d\n", @objects);
}
