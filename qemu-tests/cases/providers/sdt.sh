# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# @debug: quick
# Tracepoints with their arguments. sys_enter has the registers and the number; the test checks only
# the number.
provider-check run sdt:sched::sched_switch sdt:syscalls:: sdt:raw_syscalls::sys_exit -- ls / 2>/dev/null | grep ^sdt |
	sed -E 's/ [1-9][0-9]*$/ some/'
provider-check values sdt:raw_syscalls::sys_enter arg1 -- sh -c 'kill -0 1' 2>/dev/null | grep -qx 62 && echo seen
