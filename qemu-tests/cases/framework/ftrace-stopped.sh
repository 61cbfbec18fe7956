# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# @limit: 60
# @last: ftrace has stopped for good
# If ftrace stops while functions are traced, it keeps calling the module for ever. The tracing ends
# normally, the module stays, and what needs no ftrace continues to work.
dmesg -C
stop=$(dirname "$(cat /run/vm/module)")/../stopftrace/stopftrace.ko
cat >/tmp/stop <<end
sleep 0.01
insmod $stop
sleep 0.01
end
dtrace -qn 'fbt::*nanosleep*:, sysinfo:::sysread { @[probeprov] = count(); } END { printa("%s\n", @); }' -c 'sh /tmp/stop' | sort
rmmod dtrace 2>/dev/null && echo "unloaded under calls"
sleep 0.01
dtrace -qn 'fbt::do_nanosleep:entry { exit(0); }' 2>&1
dtrace -qn 'tick-10ms { printf("tick\n"); exit(0); }' 2>&1
dtrace -qn 'sdt:sched::sched_switch { printf("%s\n", probename); exit(0); }' 2>&1
dmesg | sed -n 's/.*dtrace: \(.*ftrace\|.*traced\)/\1/p' | sed 's/up to [0-9]*/some/; s/traced: .*/traced/' | sort -u
rm -f /tmp/stop
