# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# @limit: 90
# Every event of proc with its arguments, in the program that causes it; the output is sorted,
# because two CPUs may cause events at the same time.
core_pattern=$(cat /proc/sys/kernel/core_pattern)
echo core >/proc/sys/kernel/core_pattern
cd /tmp
cat >/tmp/proc.d <<'D'
proc:::create /pid == $target/ { printf("create %s of %d\n", args[0]->pr_fname, args[0]->pr_ppid == pid); }
proc:::lwp-create /pid == $target/ {
	printf("lwp-create %c %s\n", args[0]->pr_sname, args[0]->pr_lwpid == args[1]->pr_pid ? "first" :
	    args[1]->pr_pid == pid && args[1]->pr_nlwp == 2 ? "second" : "wrong");
}
proc:::start /ppid == $target/ { self->started = 1; printf("start %s\n", execname); }
proc:::lwp-start /ppid == $target && tid == pid/ { printf("lwp-start after start: %d\n", self->started); }
proc:::lwp-start /pid == $target && tid != pid/ { printf("lwp-start second\n"); }
proc:::lwp-exit /pid == $target && tid != pid/ { printf("lwp-exit second\n"); }
proc:::lwp-exit /ppid == $target/ { self->ended = 1; }
proc:::exit /ppid == $target/ { printf("exit %d after lwp-exit: %d\n", args[0], self->ended); }
proc:::exec /ppid == $target/ { printf("exec %s\n", args[0]); }
proc:::exec-failure /ppid == $target/ { printf("exec-failure %d\n", args[0]); }
proc:::exec-success /ppid == $target/ { printf("exec-success %s\n", execname); }
proc:::signal-send /pid == $target/ {
	printf("signal-send %d to %s %d\n", args[2], args[1]->pr_fname, args[0]->pr_lwpid == tid);
}
proc:::signal-discard /pid == $target && args[1]->pr_pid == pid/ {
	printf("signal-discard %d %d\n", args[2], args[0]->pr_lwpid == tid);
}
/* Not that of a child that ends (17): it is taken only where it came while signals were held back. */
proc:::signal-handle /(pid == $target || ppid == $target) && args[0] != 17/ {
	printf("signal-handle %d %d handler: %d\n", args[0], args[1] != NULL ? args[1]->si_signo : 0,
	    args[2] != NULL);
}
proc:::signal-clear /pid == $target/ { printf("signal-clear %d\n", args[0]); }
proc:::fault /ppid == $target/ { printf("fault %d signal %d\n", args[0], args[1]->si_signo); }
D
dtrace -qs /tmp/proc.d -c proc-events | LC_ALL=C sort | uniq -c | sed 's/^ *//; /^[0-9]* $/d'
echo "$core_pattern" >/proc/sys/kernel/core_pattern
