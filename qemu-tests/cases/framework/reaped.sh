# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# @limit: 60
# A thread that has left all lists has no parent, whatever has become of the parent: the pointer may
# lead to freed memory. (The scheduler normally reserves a little CPU time for other tasks when a
# real-time process runs; this is turned off here.)
fair=/sys/kernel/debug/sched/fair_server/cpu1/runtime
runtime=$(cat $fair) && echo 0 >$fair
limit=$(cat /proc/sys/kernel/sched_rt_runtime_us) && echo -1 >/proc/sys/kernel/sched_rt_runtime_us
dtrace -wqn '
	fbt::release_thread:entry /execname == "last-thread"/ { chill(100000000); }
	syscall::sched_get_priority_max:entry /execname == "reaped" && arg0 == 77/ { gone = 1; }
	fbt::do_task_dead:entry /execname == "last-thread"/ {
		printf("parent gone: %d, ppid %d %d, of init: %d, of itself: %d\n",
		    gone, ppid, curpsinfo->pr_ppid, progenyof(1), progenyof(pid));
		dead = 1;
	}
	sched:::off-cpu /execname == "last-thread" && dead/ { printf("off-cpu: ppid %d, of init: %d\n", ppid, progenyof(1)); }
	' -c reaped | grep .
echo "$limit" >/proc/sys/kernel/sched_rt_runtime_us
echo "$runtime" >$fair
# The same without a set-up: threads and their parents exit while the scheduler is traced.
cat >/tmp/orphans <<'end'
for n in $(seq 100); do (sh -c 'overload 10 >/dev/null & (:) &' &); done
wait
end
dtrace -qn 'sched:::off-cpu { @[ppid] = count(); } sched:::off-cpu /progenyof(1)/ { of++; } END { trunc(@); printf("%d\n", of > 0); }' \
	-c 'sh /tmp/orphans' | grep .
