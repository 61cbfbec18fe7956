#!/usr/sbin/dtrace -s
/*
 * SPDX-FileCopyrightText: The DTrace for Linux authors
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * callcount.d [CALL]: how often a command makes each call, or only CALL, which may be missing.
 */

#pragma D option quiet
#pragma D option defaultargs

inline string CALL = $$1;

syscall:::entry
/pid == $target/
{
	CALL == "" ? @all[probefunc] = count() : probefunc == CALL ? @one[probefunc] = count() : 1;
}

dtrace:::END
{
	CALL == "" ? printa("%-20s %@d\n", @all) : printa("only %s: %@d\n", @one);
}
