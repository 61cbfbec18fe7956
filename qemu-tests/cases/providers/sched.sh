# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# @limit: 90
# Every event of sched, in the program that causes it or, if another task fires the probe, for that
# program.
cat >/tmp/sched.d <<'D'
sched:::on-cpu /pid == $target/ { on++; self->on = 1; }
sched:::off-cpu /self->on/ { off++; self->on = 0; same += args[0]->pr_lwpid == tid; }
sched:::off-cpu /pid == $target && curlwpsinfo->pr_state == SSLEEP && curlwpsinfo->pr_sname == 'S'/ { asleep++; }
sched:::off-cpu /pid == $target && curlwpsinfo->pr_state == SONPROC/ { awake++; }
sched:::off-cpu /pid == $target && curlwpsinfo->pr_state == SZOMB/ { ended++; }
sched:::remain-cpu /pid == $target/ { remained++; }
sched:::preempt /pid == $target/ { preempted++; }
sched:::sleep /pid == $target/ { slept++; }
sched:::wakeup /args[1]->pr_pid == $target/ { woken++; }
sched:::enqueue /args[1]->pr_pid == $target && args[2]->cpu_id == 0 && args[3] == 0/ { enqueued++; }
sched:::dequeue /args[1]->pr_pid == $target && args[2]->cpu_id == 0/ { dequeued++; }
sched:::tick /pid == $target && args[0]->pr_lwpid == tid && curcpu->cpu_id == cpu/ { ticks++; }
sched:::surrender { surrendered++; own += args[0]->pr_lwpid == tid && tid != 0; }
sched:::change-pri /args[1]->pr_pid == $target/ { printf("from %d to %d\n", args[0]->pr_pri, args[2]); }
sched:::on-cpu /chip >= 0 && lgrp >= 0 && pset == -1/ { places++; }
END {
	printf("on and off: %d %d\n", on >= 50, on - off >= -1 && on - off <= 1);
	printf("next is another: %d\n", same == 0);
	printf("sleep: %d, wakeup: %d\n", slept >= 50 && slept <= off + 1, woken >= 50);
	printf("enqueue: %d, dequeue: %d\n", enqueued >= 50, dequeued >= 50);
	printf("preempt: %d, tick: %d, remain-cpu: %d\n", preempted > 0, ticks > 0, remained > 0);
	printf("about to sleep: %d, to wait for a CPU: %d\n", asleep >= 50 && asleep >= slept, awake > 0 && asleep + awake + ended >= off);
	printf("surrender: %d, of others: %d\n", surrendered > 0, own == 0);
	printf("chip, lgrp, pset: %d\n", places > 0);
}
D
dtrace -qs /tmp/sched.d -c sched-events
