# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: GPL-2.0-only
#
# @limit: 120
# The switch of all of ftrace: who traces functions keeps others from turning it off.
switch=/proc/sys/kernel/ftrace_enabled
. ./coexist-ours
# With which errno is the kernel's own affair.
ours bash -c "echo 0 2>/dev/null >$switch || echo refused; cat $switch; $calls"
