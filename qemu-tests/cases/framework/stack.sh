# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: GPL-2.0-only
#
# @limit: 120
# Stacks begin where the probe is, without a frame of ours: at a function's caller, at what a sample interrupted.
dtrace -qn 'fbt::vfs_read:entry { stack(1); exit(0); }' -c 'cat /proc/version' | grep -o 'ksys_read\|vfs_[a-z]*\|kernel_read' | head -1
# (What cleans up for a tracing is our own, in a thread of the kernel's.)
dtrace -qn 'profile-97, tick-10ms /execname != "dtrace" && substr(execname, 0, 7) != "kworker"/ { stack(); } tick-1s { exit(0); }' | grep -c 'dtrace`' || true
# A sample's caller is the second frame.
dtrace -qn 'tick-10ms /stackdepth > 1/ { stack(2); sym(caller); exit(0); }' |
	awk 'NF { n++; sub(/\+0x.*/, "", $1); frame[n] = $1 } END { print frame[2] == frame[3] ? "caller" : "no caller: " frame[2] " " frame[3] }'
# A control call fires BEGIN and END, on its own CPU or on another: that is no place in the kernel.
dtrace -qn 'BEGIN, END { printf("%d %d\n", stackdepth, caller); stack(); } BEGIN { exit(0); }' | grep .
dtrace -x cpu=1 -qn 'BEGIN, END { printf("%d %d\n", stackdepth, caller); stack(); } BEGIN { exit(0); }' | grep .
# ERROR is where the clause failed.
dtrace -qn 'fbt::vfs_read:entry { trace(*(int *)0); } ERROR { stack(1); exit(0); }' -c 'cat /proc/version' 2>/dev/null |
	grep -o 'ksys_read\|vfs_[a-z]*\|kernel_read' | head -1
