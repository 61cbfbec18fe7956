# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# @limit: 120
# The kernel's own tracers at the same function and tracepoint: function tracer, function graph,
# kprobes at both ends, an event. Each sees every call, in whatever order they start and end, and at
# the end nothing stays patched.
t=/sys/kernel/tracing
mountpoint -q $t || mount -t tracefs none $t
on() {
	echo 4096 >$t/buffer_size_kb
	echo vfs_read >$t/set_ftrace_filter
	echo "$1" >$t/current_tracer
	echo 'p:ours/entry vfs_read' >$t/kprobe_events
	echo 'r:ours/leave vfs_read' >>$t/kprobe_events
	echo 1 >$t/events/ours/enable
	echo 1 >$t/events/syscalls/sys_enter_read/enable
	echo 1 >$t/events/sched/sched_process_exit/enable
	echo >$t/trace
}
off() {
	echo 0 >$t/events/enable
	echo nop >$t/current_tracer
	echo >$t/set_ftrace_filter
	echo >$t/kprobe_events
	echo >$t/trace
}
. ./coexist-ours
# Stop them first, because reading the trace would be traced too.
theirs() {
	echo 0 >$t/tracing_on
	awk '/vfs_read\(\)|vfs_read <-/ { f++ } /entry: [(]/ { e++ } /leave: [(]/ { l++ } /sys_read\(/ { s++ } /sched_process_exit:/ { x++ }
		END { print "theirs", (f >= 500), (e >= 500), (l >= 500), (s >= 500), (x > 0) }' $t/trace
	echo 1 >$t/tracing_on
}
for tracer in function function_graph; do
	echo $tracer
	on $tracer
	ours $calls
	theirs
	# Stop them while DTrace traces, and start them again.
	off
	on $tracer
	$calls
	theirs
	off
done
ours sh -c "echo function >$t/current_tracer; $calls; echo nop >$t/current_tracer"
device-check patched | wc -l
