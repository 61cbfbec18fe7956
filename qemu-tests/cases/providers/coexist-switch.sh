# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# @limit: 120
# The switch that turns ftrace off: while functions are traced, the kernel refuses it.
switch=/proc/sys/kernel/ftrace_enabled
. ./coexist-ours
# The kernel decides which errno that is.
ours bash -c "echo 0 2>/dev/null >$switch || echo refused; cat $switch; $calls"
