# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: GPL-2.0-only
#
# @limit: 120
# The switch of all of ftrace: who traces functions keeps others from turning it off, and what is wanted while it is off is not enabled
# and named. What does without ftrace goes on.
t=/sys/kernel/tracing
mountpoint -q $t || mount -t tracefs none $t
switch=/proc/sys/kernel/ftrace_enabled
# With which errno is the kernel's own affair.
off="echo 0 2>/dev/null >$switch || echo refused; cat $switch"
. ./coexist-ours
ours bash -c "$off; $calls"
rmmod dtrace
echo 0 >$switch
insmod "$(cat /run/vm/module)"
for probe in fbt:vmlinux:vfs_read: syscall:vmlinux:read:entry ip:::send sdt:sched::sched_process_exit; do
	provider-check run $probe -- $calls 2>&1 | sed 's/^[0-9]* probes, .* errors *//; s/ [1-9][0-9]*$/ some/; /^$/d'
done
echo 1 >$switch
ours $calls
awk '!/^dtrace_anchor/ { n++ } END { print n + 0 }' $t/enabled_functions
