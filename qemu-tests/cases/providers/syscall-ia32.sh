# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# System calls of 32-bit programs: arguments, value and errno. Also a call whose 64-bit and 32-bit
# kinds share one function: each kind alone and both together.
provider-check values syscall:ia32:open:entry arg1 arg2 -- ia32-events 2>/dev/null
provider-check values syscall:ia32:open:return arg0 arg1 errno -- ia32-events 2>/dev/null
provider-check values syscall:ia32:kill:entry arg0 arg1 -- ia32-events 2>/dev/null
dtrace -qn 'syscall:ia32:open:entry { printf("%s %s\n", probemod, copyinstr(arg0)); }' -c ia32-events
for probes in syscall:vmlinux:getppid syscall:ia32:getppid syscall::getppid; do
	provider-check run $probes:entry $probes:return -- ia32-events 2>/dev/null
done
dtrace -qn 'syscall::getppid:return /pid == $target/ { printf("%s %d\n", probemod, arg1 == ppid); }' -c ia32-events
provider-check types syscall:ia32:kill:entry
provider-check types syscall:ia32:open:entry
dtrace -qn 'syscall::open:entry /pid == $target/ { printf("%s %s %d\n", probemod, copyinstr((uintptr_t)args[0]), args[1]); }' -c ia32-events
