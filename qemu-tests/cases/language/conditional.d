/*
 * SPDX-FileCopyrightText: The DTrace for Linux authors
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * @args: -c true
 * @status: 3
 * Statements that a condition picks, constant or not: a firing has one line, and one that ends in a fault goes no further.
 */

inline int OPT_pid = 1;
inline int OPT_time = 0;

syscall::exit_group:entry
/pid == $target/
{
	OPT_pid ? printf("pid") : 1;
	OPT_time ? printf("never") : 1;
	pid == $target ? printf(" target") : printf(" other");
	arg0 == 0 ? @ends[execname] = count() : 1;
	arg0 == 0 ? this->text = "well" : 1;
	arg0 == 0 ? (this->text == "well" ? printf(" %s", this->text) : 1) : printf(" badly");
}

syscall::exit_group:entry
/pid == $target/
{
	printf("before");
	n++ ? printf("never") : 1;
	*(int *)0 ? printf("never") : printf("never");
	printf("never");
}

ERROR
{
	arg4 == 1 ? printf("bad address") : printf("other fault");
}

END
{
	printa("%s %@d", @ends);
	n == 1 ? exit(3) : exit(4);
}
