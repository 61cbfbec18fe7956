# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: GPL-2.0-only
#
# @limit: 120
# Stacks begin where the probe is, without a frame of ours: at a function's caller, at what a sample interrupted.
dtrace -qn 'fbt::vfs_read:entry { stack(1); exit(0); }' -c 'cat /proc/version' | grep -o 'ksys_read\|vfs_[a-z]*\|kernel_read' | head -1
dtrace -qn 'profile-97, tick-10ms /execname != "dtrace"/ { stack(); } tick-1s { exit(0); }' | grep -c 'dtrace`' || true
# A control call fires BEGIN, on its own CPU or on another.
for _ in 1 2 3 4 5; do dtrace -qn 'BEGIN { stack(); exit(0); }'; done | grep -c 'dtrace`' || true
