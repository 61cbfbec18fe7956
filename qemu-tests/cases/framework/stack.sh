# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# @limit: 120
# Stacks begin at the probe, without frames of the module: at a function's caller, or at what a
# sample interrupted.
dtrace -qn 'fbt::vfs_read:entry { stack(1); exit(0); }' -c 'cat /proc/version' | grep -o 'ksys_read\|vfs_[a-z]*\|kernel_read' | head -1
# (The module's cleaner runs in a worker thread of the kernel.)
dtrace -qn 'profile-97, tick-10ms /execname != "dtrace" && substr(execname, 0, 7) != "kworker"/ { stack(); } tick-1s { exit(0); }' | grep -c 'dtrace`' || true
# The caller in a sample is the second frame.
dtrace -qn 'tick-10ms /stackdepth > 1/ { stack(2); sym(caller); exit(0); }' |
	awk 'NF { n++; sub(/\+0x.*/, "", $1); frame[n] = $1 } END { print frame[2] == frame[3] ? "caller" : "no caller: " frame[2] " " frame[3] }'
# BEGIN and END are fired by a control call, on its own CPU or on another, and are not at a place in
# the kernel.
dtrace -qn 'BEGIN, END { printf("%d %d\n", stackdepth, caller); stack(); } BEGIN { exit(0); }' | grep .
dtrace -x cpu=1 -qn 'BEGIN, END { printf("%d %d\n", stackdepth, caller); stack(); } BEGIN { exit(0); }' | grep .
# ERROR has the stack of the clause that failed.
dtrace -qn 'fbt::vfs_read:entry { trace(*(int *)0); } ERROR { stack(1); exit(0); }' -c 'cat /proc/version' 2>/dev/null |
	grep -o 'ksys_read\|vfs_[a-z]*\|kernel_read' | head -1
