#!/usr/sbin/dtrace -s
/*
 * SPDX-FileCopyrightText: The DTrace for Linux authors
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Objects that a program of Perl 5.40 (-c or -p) blesses, by package, file and line. Debian's perl
 * has no USDT probes and does not export the functions that execute calls, so the script traces
 * Perl_sv_bless(). The body of a package has the name at offset 32, or an array of names if the
 * count at offset 60 is not 0; the text of a name is at offset 8. The first argument is the
 * interpreter, which has the current statement at offset 208; a statement has its line at offset 36
 * and its file at offset 48.
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
