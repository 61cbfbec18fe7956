# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# @debug: quick
# Arguments at the entry; value and errno at the return; calls that share a function with others;
# types; a call that a signal interrupts.
provider-check values syscall::kill:entry arg0 arg1 -- sh -c 'kill -0 1' 2>/dev/null | grep -x '1 0'
provider-check values syscall::openat:return arg0 arg1 errno -- cat /nonesuch 2>/dev/null | grep -x -- '-2 -2 2' | sort -u
provider-check run syscall::getppid:entry syscall::getppid:return -- sh -c true 2>/dev/null
provider-check types syscall::openat:entry
provider-check types syscall::read:return
dtrace -qn 'syscall::clock_nanosleep:return /progenyof($target) && errno == EINTR/ {
	printf("%s %d %d %d\n", execname, arg0 == -EINTR, arg1 == -EINTR, args[0] == -EINTR);
}' -c 'timeout 1 sleep 20' | sed '/^$/d'
