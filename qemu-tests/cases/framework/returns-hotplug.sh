# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# @limit: 200
# @slow: CPUs come and go while all functions are traced
# A CPU goes offline and online while the returns of all functions are traced. Functions that its
# idle task calls then may never return, and that task never exits: a hook on such a call would be
# lost for good, so no such calls are hooked. The hooks on the task's list are counted, up to a
# hundred.
online=/sys/devices/system/cpu/cpu1/online
{
	echo 'profile-197 { this->n = 0; this->at = cpu == 1 && pid == 0 ? curthread->rethooks.first : NULL; }'
	for _ in $(seq 100); do echo 'profile-197 /this->at != NULL/ { this->n++; this->at = this->at->next; }'; done
	echo 'profile-197 /cpu == 1 && pid == 0/ { @ = min(this->n); } tick-1s { exit(0); } END { printa("left: %@d\n", @); }'
} >/tmp/left.d
# round TIMES PROBES...: takes the CPU offline and online that often while these are traced.
round() {
	: >/tmp/told
	dtrace -qn "BEGIN { printf(\"begun\n\"); } $2 { n++; } END { printf(\"%s\n\", n > 1000 ? \"traced\" : \"idle\"); }" >/tmp/told 2>&1 & tracer=$!
	timeout 200 await begun /tmp/told
	for _ in $(seq "$1"); do
		echo 0 >$online
		echo 1 >$online
	done
	kill $tracer
	wait $tracer
	grep -e traced -e returns -e idle /tmp/told
	dtrace -qs /tmp/left.d | grep .
}
echo '# the functions that CPUs go and come by'
round 200 'fbt::*idle*:return,fbt::cpu*:return'
echo '# all functions'
round 10 fbt:::return
rm -f /tmp/told /tmp/left.d
