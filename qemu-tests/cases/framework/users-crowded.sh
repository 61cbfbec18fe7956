# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# @limit: 120
# If there is no room for slots within reach of one instruction, there is none for its neighbours:
# this is found out once, not for each of five hundred, while others wait for the framework's mutex.
. ./member
rmmod dtrace && insmod "$(cat /run/vm/module)" group=77
chmod 666 /dev/dtrace
cp "$(command -v no-gap)" /tmp/work
mkfifo /tmp/lines
(own /tmp/work) </tmp/lines >/tmp/said & of=$!
exec 3>/tmp/lines
timeout 60 await there /tmp/said
mountpoint -q /sys/kernel/tracing || mount -t tracefs none /sys/kernel/tracing
# Each area of slots is a shmem file, so this counts the attempts.
echo 'p:looks shmem_file_setup' >/sys/kernel/tracing/kprobe_events
echo 1 >/sys/kernel/tracing/events/kprobes/looks/enable
as 77 dtrace -p $of -n 'BEGIN { exit(0); } pid$target:a.out:many: { @ = count(); }' 2>&1 | sed -n 's/pid[0-9]*/pidN/g; /^dtrace/p'
looks=$(grep -c looks: /sys/kernel/tracing/trace)
[ "$looks" -le 10 ] || echo "$looks areas"
echo 0 >/sys/kernel/tracing/events/kprobes/looks/enable
echo >/sys/kernel/tracing/kprobe_events
exec 3>&-
wait $of
rm -f /tmp/lines /tmp/said /tmp/work
rmmod dtrace && insmod "$(cat /run/vm/module)"
