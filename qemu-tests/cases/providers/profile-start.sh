# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: GPL-2.0-only
#
# @limit: 60
# Whoever enables a timer waits for no thread of a CPU: a busy one does not let its threads run soon, and others wait for him.
# What the scheduler does while a CPU comes may be out of RCU's sight, which is told.
while_done() {
	dtrace -qn 'sched:::on-cpu /execname == "cpuhp/0" || execname == "cpuhp/1"/ { n++; }
		END { printf("%s: %s\n", $$1, n > 0 ? "threads ran" : "none ran"); }' -c "$2" "$1" 2>/dev/null | grep .
}

while_done timers "dtrace -qn 'profile-97,profile-199 { n++; } tick-300ms { exit(0); }'"
while_done 'a CPU that goes and comes' "sh -c 'echo 0 >/sys/devices/system/cpu/cpu1/online; echo 1 >/sys/devices/system/cpu/cpu1/online'"
