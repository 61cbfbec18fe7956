# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# @limit: 120
# @before: 7.3
# While ftrace is switched off, probes that need it are not enabled, and reported; what works
# without ftrace continues. (From 7.3 on it cannot be switched off, kernel/trace/ftrace.c:
# ftrace_enable_sysctl.)
t=/sys/kernel/tracing
mountpoint -q $t || mount -t tracefs none $t
switch=/proc/sys/kernel/ftrace_enabled
. ./coexist-ours
rmmod dtrace
echo 0 >$switch
insmod "$(cat /run/vm/module)"
for probe in fbt:vmlinux:vfs_read: syscall:vmlinux:read:entry ip:::send sdt:sched::sched_process_exit; do
	provider-check run $probe -- $calls 2>&1 | sed 's/^[0-9]* probes, .* errors *//; s/ [1-9][0-9]*$/ some/; /^$/d'
done
echo 1 >$switch
ours $calls
device-check patched | wc -l
