# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# @limit: 120
# @slow: it makes tens of thousands of calls
# Arguments of processes that are created, execute a program and exit meanwhile: either the old or
# the new ones, or the name. Also of tasks that may have been freed.
cat >/tmp/rush.d <<'D'
proc:::signal-send, proc:::signal-discard
/args[2] == SIGWINCH/
{
	@signals[args[1]->pr_psargs] = count();
	recent = (struct task_struct *)args[1]->pr_addr;
}

sched:::wakeup
/args[1]->pr_fname == "own-arguments" && args[1]->pr_pid != pid/
{
	@wakeups[args[1]->pr_psargs] = count();
}

profile-997
/recent != NULL/
{
	@[taskargs(recent)] = count();
}

END
{
	trunc(@);
	printa("signals: %s %@d\n", @signals);
	printa("wakeups: %s %@d\n", @wakeups);
}
D
# Which process is woken is a matter of luck; what is shown of it is not.
dtrace -qs /tmp/rush.d -c 'own-arguments rush 500' 2>/tmp/errors |
	sed -E '/^$/d; s/ [0-9]+$//; s/^(wakeups: own-arguments) (rush 500|one of many)$/\1/' | sort -u
! grep -v 'profile-997.*invalid address' /tmp/errors
