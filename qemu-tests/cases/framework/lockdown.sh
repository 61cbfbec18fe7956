# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# @limit: 60
# @last: a kernel that was locked down stays locked down
# What root may still do in a kernel that is locked down for integrity, where user memory cannot be
# written, and for confidentiality.
level=/sys/kernel/security/lockdown
mount -t securityfs securityfs "${level%/*}" 2>/dev/null
attempts() {
	dtrace -wqn 'BEGIN { printf("writes %d", 1); exit(0); }' 2>&1 | grep -o 'writes 1\|no privilege for destructive actions'
	dtrace -qn 'BEGIN { printf("sees %d", curthread->pid == tid); exit(0); } ERROR { exit(0); }' 2>&1 |
		grep -o 'sees 1\|invalid kernel access'
	dtrace -qn 'BEGIN { stack(1); printf("walks %d", 1); exit(0); } ERROR { exit(0); }' 2>&1 | grep -o 'walks 1\|invalid kernel access'
	dtrace -qn 'fbt::vfs_read:entry { printf("probes %s", probefunc); exit(0); }' -c 'cat /proc/uptime' 2>&1 |
		grep -o 'probes vfs_read\|the probes need rights over the kernel'
	# A breakpoint in a program changes nothing in the kernel. A program is not notified of
	# enabled probes by a write to its memory, but by a register it is.
	dtrace -qn 'pid$target:a.out:fib:entry { @ = count(); } END { printa("places %@d", @); }' -c 'pid-work fib' 2>&1 | grep -o 'places [0-9]*'
	dtrace -x holdtime=1sec -Zqn 'work$target:::tail, work$target:::said-it { }' -c 'usdt-dof register fire third fire' 2>&1 | grep asks
	dtrace -qn 'syscall::read:entry /uid == 0/ { printf("traces %d", uid); exit(0); }' -c 'cat /proc/uptime' 2>&1 | grep -o "traces 0"
}
# late NAME: starts a consumer, as $late, which gets its program only after it has opened the
# device.
late() {
	mkfifo /tmp/$1.d
	dtrace -o /tmp/$1 -qs /tmp/$1.d 2>/tmp/$1.err & late=$!
	exec 9>/tmp/$1.d
	timeout 30 sh -c "until ls -l /proc/$late/fd 2>/dev/null | grep -q /dev/dtrace; do sleep 0.1; done"
}
for to in none integrity confidentiality; do
	late $to
	[ $to = none ] || echo $to >$level
	echo 'BEGIN { printf("begun\n"); exit(0); }' >&9
	exec 9>&-
	wait $late
	grep -ho -e begun -e 'the kernel has been.*' /tmp/$to /tmp/$to.err
	grep -o '\[.*\]' $level
	attempts
done
echo integrity 2>&1 >$level | grep -o 'not permitted'
