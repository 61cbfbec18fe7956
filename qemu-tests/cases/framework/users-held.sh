# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# @limit: 120
# @debug: quick
# A user can have his program's mmap lock held as long as he likes. Nothing waits for it:
# breakpoints that cannot be set are refused; those that cannot be removed are left behind, fire
# nothing, and are removed when the lock is free again.
. ./member
rmmod dtrace && insmod "$(cat /run/vm/module)" group=77
chmod 666 /dev/dtrace
cp "$(command -v users-places)" /tmp/work
(own /tmp/work where mark /tmp/ready await /tmp/go calls calls asked) >/tmp/said & of=$!
ready
where=$(cat /tmp/said)
mkfifo /tmp/lines
# held COMMAND...: traces the program as a user, given by the command, while its mmap lock is held.
held() {
	("$@" device-check held $of $where </tmp/lines) >/tmp/told 2>&1 & check=$!
	exec 3>/tmp/lines
	told traces
	insmod "$(dirname "$(cat /run/vm/module)")/../hold/hold.ko" pid=$of
	echo >&3
	told left || echo somebody waits for it
	rmmod hold
	echo >&3
	exec 3>&-
	wait $check
	sed 's/pid[0-9]*:[^ ]*/it/' /tmp/told
}
told() { timeout 100 await -p $check "$1" /tmp/told; }
echo a member
held as 77
echo root
held env
touch /tmp/go
wait
tail -n 1 /tmp/said
rm -f /tmp/go /tmp/told /tmp/said /tmp/lines /tmp/work
rmmod dtrace && insmod "$(cat /run/vm/module)"
