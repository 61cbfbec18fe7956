#!/usr/sbin/dtrace -s
/*
 * SPDX-FileCopyrightText: The DTrace for Linux authors
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * namewatch.d: the files that a command renames and removes.
 */

#pragma D option quiet

syscall::unlink:entry, syscall::unlinkat:entry
/pid == $target/
{
	self->what = probefunc == "unlink" ? copyinstr(arg0) : copyinstr(arg1);
}

syscall::rename:entry
/pid == $target/
{
	self->what = strjoin(basename(copyinstr(arg0)), strjoin(" to ", basename(copyinstr(arg1))));
}

syscall::unlink:return, syscall::unlinkat:return, syscall::rename:return
/self->what != NULL/
{
	errno ? printf("%s failed: %d\n", probefunc, errno) : (@[probefunc, basename(self->what)] = count());
	self->what = 0;
}

dtrace:::END
{
	printa("%-10s %-20s %@d\n", @);
}
