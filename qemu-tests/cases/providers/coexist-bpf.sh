# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: GPL-2.0-only
#
# @limit: 120
# BPF programs at the same function and tracepoint as ours, in all ways that there are for them: each sees every call, whoever comes or
# goes first, and in the end nothing stays patched.
t=/sys/kernel/tracing
mountpoint -q $t || mount -t tracefs none $t
. ./coexist-ours
# Without us, then while ours are there, then there before ours come and after they have gone.
bpf-events
ours bpf-events
export -f ours
bpf-events bash -c "ours $calls"
device-check patched | wc -l
