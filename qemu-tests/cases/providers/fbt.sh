# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# @debug: quick
# Arguments and values. An entry fires as often with its return enabled as without, and with another
# consumer's return: once for each call of this test, and for those that others make meanwhile.
provider-check values fbt:vmlinux:vfs_read:return arg1 -- sh -c 'read -r x </proc/self/comm' 2>/dev/null | grep -cx 1
head -c 4321 /dev/zero >/tmp/fbt-file
provider-check values fbt:vmlinux:vfs_read:entry arg2 -- dd if=/tmp/fbt-file of=/dev/null bs=4321 count=1 2>/dev/null |
	grep -x 4321
provider-check values fbt:vmlinux:vfs_read:return arg1 -- dd if=/tmp/fbt-file of=/dev/null bs=5000 count=1 2>/dev/null |
	grep -x 4321
calls='dd if=/dev/zero of=/dev/null bs=1 count=1000'
count() { provider-check run "$@" -- $calls 2>/dev/null | awk '{ print $1, ($2 >= 1000 && $2 < 2000) ? "ok" : $2 }'; }
count fbt:vmlinux:read_iter_zero:entry fbt:vmlinux:read_zero:entry fbt:vmlinux:vfs_read:entry |
	sed '/ok/!d' | head -1 | cut -d: -f4
count fbt:vmlinux:vfs_read:entry
count fbt:vmlinux:vfs_read:return
count fbt:vmlinux:vfs_read:entry fbt:vmlinux:vfs_read:return
provider-check run fbt:vmlinux:vfs_read:return -- sh -c 'echo >/tmp/fbt-ready; while [ -e /tmp/fbt-ready ]; do sleep 0.1; done' >/dev/null 2>&1 &
until [ -e /tmp/fbt-ready ]; do sleep 0.1; done
count fbt:vmlinux:vfs_read:entry
rm /tmp/fbt-ready
wait
# The typed arguments of a return: no bits of the address are lost.
dtrace -qn 'fbt:vmlinux:read_zero:return, fbt:vmlinux:read_iter_zero:return /pid == $target/ {
	printf("%d %d\n", sizeof (args[0]), args[0] == arg0 && args[0] == caller && args[1] == arg1); exit(0); }' \
	-c 'dd if=/dev/zero of=/dev/null bs=1 count=1 status=none'
