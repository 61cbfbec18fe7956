# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# @limit: 60
# @last: ftrace has stopped for good
# If ftrace stops while it knows the module but traces nothing for it, the module can be unloaded.
# What ftrace has on its list is still read then, for instance by readers of stacks.
dmesg -C
dtrace -qn 'fbt::do_nanosleep:entry { exit(0); }' -c 'sleep 0.01'
insmod "$(dirname "$(cat /run/vm/module)")/../stopftrace/stopftrace.ko"
dtrace -qn 'sched:::off-cpu { printf("%s\n", probename); exit(0); }'
rmmod dtrace && echo gone
for n in 1 2 3; do cat /proc/[0-9]*/stack; done 2>/dev/null | grep -c kthread | grep -v '^0$' >/dev/null && echo walked
insmod "$(cat /run/vm/module)" 2>&1 | grep -o 'No such device'
dmesg | sed -n 's/.*dtrace: \(.*ftrace\)/\1/p' | sort -u
