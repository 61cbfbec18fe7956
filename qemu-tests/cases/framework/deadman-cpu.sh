# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# @limit: 120
# Each CPU where probes fire gives a sign of life: a tracing is killed, and its probes are disarmed,
# if one CPU gives none while the others run. (The scheduler normally reserves a little CPU time for
# other tasks when a real-time process runs; this is turned off here.) See
# qemu-tests/src/bin/device-check/lives.rs.
module=$(cat /run/vm/module)
fair=/sys/kernel/debug/sched/fair_server/cpu1/runtime
runtime=$(cat $fair) && echo 0 >$fair
limit=$(cat /proc/sys/kernel/sched_rt_runtime_us) && echo -1 >/proc/sys/kernel/sched_rt_runtime_us
rmmod dtrace && insmod "$module" deadman_timeout=3000
taskset -c 0 device-check starved
echo "$limit" >/proc/sys/kernel/sched_rt_runtime_us
echo "$runtime" >$fair
rmmod dtrace && insmod "$module"
