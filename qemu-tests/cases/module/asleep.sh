# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# @limit: 60
# @debug: quick
# Tasks sleep in functions whose return is hooked, while their probes are disabled and the module is
# unloaded and loaded.
start() {
	for _ in 1 2 3 4 5; do
		sleep 8765 &
	done
}
export -f start
provider-check run 'fbt:vmlinux:*nanosleep:return' syscall::clock_nanosleep:return -- bash -c 'start; sleep 1' >/dev/null 2>&1
rmmod dtrace && echo gone
pgrep -fx 'sleep 8765' | wc -l
insmod "$(cat /run/vm/module)" && echo back
pkill -fx 'sleep 8765'
while pgrep -fx 'sleep 8765' >/dev/null; do sleep 0.1; done
provider-check run fbt:vmlinux:hrtimer_nanosleep:return -- sleep 0.1 2>/dev/null
