# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# @limit: 60
# A stack is saved at one probe and printed at another, as it was when it was taken: in a variable,
# as a key, and by its members.
dtrace -qn 'syscall::read:entry /pid == $target && !self->seen/ {
	self->kernel = stack(); self->user = ustack(); self->seen = 1;
	printf("kernel"); stack(); printf("user"); ustack();
}
syscall::read:return /self->seen == 1/ {
	self->seen = 2;
	printf("kernel%kuser%k", self->kernel, self->user);
	printf("depth %d\nprocess %d\n", self->kernel.depth > 1 && stack(100).depth == stackdepth,
	    self->user.is_user && self->user.pid == pid && !self->kernel.is_user);
	printf("first %d\n", self->user.addrs[0] == ustack(1).addrs[0] && self->user.addrs[0] == uregs[R_RIP]);
}' -c 'dd if=/proc/version of=/dev/null status=none' | awk '/^kernel$/ { half++ } /^(depth|process|first)/ { print; next } NF { text[half] = text[half] $1 "\n"; n[half]++ }
	END { print (n[1] > 3), text[1] == text[2] ? "the same" : "not the same:\n" text[1] "then\n" text[2] }'
# Where threads began to sleep, recorded when they were woken.
dtrace -qn 'sched:::off-cpu /pid == $target/ { self->from = stack(20); self->off = 1; }
sched:::on-cpu /self->off/ { @[self->from] = count(); self->off = 0; self->from = 0; }' -c 'sleep 0.2' 2>&1 |
	sed -n 's/.*`\(do_nanosleep\|hrtimer_nanosleep\)+.*/\1/p' | sort -u
dtrace -qn 'BEGIN { x = stack(3); x = stack(4); }'
echo "status $?"
