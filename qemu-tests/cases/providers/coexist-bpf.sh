# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# @limit: 120
# BPF programs at the same function and tracepoint as DTrace's probes, in all ways of attaching
# them: each sees every call, in whatever order they are attached and detached, and at the end
# nothing stays patched.
t=/sys/kernel/tracing
mountpoint -q $t || mount -t tracefs none $t
. ./coexist-ours
# BPF alone, then attached while DTrace traces, then attached before DTrace starts and until after
# it has ended.
bpf-events
ours bpf-events
export -f ours
bpf-events bash -c "ours $calls"
device-check patched | wc -l
