# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: GPL-2.0-only
#
# @limit: 120
# Stacks begin where the probe is, without a frame of ours: at a function's caller, at what a sample interrupted.
dtrace -qn 'fbt::vfs_read:entry { stack(1); exit(0); }' -c 'cat /proc/version' | grep -o 'ksys_read\|vfs_[a-z]*\|kernel_read' | head -1
dtrace -qn 'BEGIN { stack(); } profile-97 { stack(); } tick-1s { stack(); exit(0); }' | grep -c 'dtrace`' || true
