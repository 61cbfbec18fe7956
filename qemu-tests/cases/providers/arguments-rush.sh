# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: GPL-2.0-only
#
# @limit: 120
# @slow: ten thousands of calls
# Arguments of processes that are made, execute a program and end meanwhile: those of before or of after, or the name. And of
# what may be a process no longer.
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
# Whom somebody wakes is a matter of luck, what is said of him is not.
dtrace -qs /tmp/rush.d -c 'own-arguments rush 500' 2>/tmp/errors |
	sed -E '/^$/d; s/ [0-9]+$//; s/^(wakeups: own-arguments) (rush 500|one of many)$/\1/' | sort -u
! grep -v 'profile-997.*invalid address' /tmp/errors
