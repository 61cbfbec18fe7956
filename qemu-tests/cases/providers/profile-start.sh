# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# @limit: 60
# Enabling a timer does not wait for a thread of any CPU: a busy CPU may not run its threads for
# long, and other operations wait behind the caller. While a CPU comes online, the scheduler may
# fire probes where RCU is not watching; dtrace reports these as drops, so stderr is discarded.
while_done() {
	dtrace -qn 'sched:::on-cpu /execname == "cpuhp/0" || execname == "cpuhp/1"/ { n++; }
		END { printf("%s: %s\n", $$1, n > 0 ? "threads ran" : "none ran"); }' -c "$2" "$1" 2>/dev/null | grep .
}

while_done timers "dtrace -qn 'profile-97,profile-199 { n++; } tick-300ms { exit(0); }'"
while_done 'a CPU that goes and comes' "sh -c 'echo 0 >/sys/devices/system/cpu/cpu1/online; echo 1 >/sys/devices/system/cpu/cpu1/online'"
