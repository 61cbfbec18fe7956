# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# @limit: 200
# A CPU goes offline and online while it is busy with probes: no event is lost, and with -x temporal
# all are in the order of time.
online=/sys/devices/system/cpu/cpu1/online
cat >/tmp/hotplug <<SCRIPT
#!/bin/sh
for round in 1 2 3; do
	overload 20000 &
	sleep 0.2
	echo 0 >$online
	sleep 0.3
	echo 1 >$online
	wait
done
overload 1000
SCRIPT
chmod +x /tmp/hotplug
dtrace -qx temporal -x bufsize=16m -x aggsize=1m -n 'syscall::sched_get_priority_max:entry /execname == "overload"/ {
	printf("at %d %d\n", timestamp, cpu); @ = count(); } END { printa("count %@d\n", @); }' -c /tmp/hotplug >/tmp/hotplug.out
awk '$1 == "calls" { calls += $2 } $1 == "count" { count = $2 }
	$1 == "at" { traced++; late += $2 < last; last = $2; cpus[$3] }
	END { print (calls > 100000 ? "busy" : calls), calls - count, "not counted,", calls - traced, "not traced,", late, "late"
	      print length(cpus), "CPUs" }' /tmp/hotplug.out
rm -f /tmp/hotplug /tmp/hotplug.out
