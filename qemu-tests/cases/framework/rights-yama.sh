# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# @limit: 180
# If Yama allows tracing a process only to its ancestors, or to the process that it has named, so
# does the module.
. ./member
rmmod dtrace && insmod "$(cat /run/vm/module)" group=77
chmod 666 /dev/dtrace
cp "$(command -v rights-work)" /tmp/work
cp "$(command -v rights-seat.so)" /tmp/seat.so
seat=/tmp/seat.so
scope=/proc/sys/kernel/yama/ptrace_scope
pid='pid$target:work:step:entry { @ = count(); } BEGIN { printf("begun\n"); } END { printa("%@d\n", @); }'
calls='syscall::sched_get_priority_max:entry { @[execname] = count(); } BEGIN { printf("begun\n"); } END { printa("%s %@d\n", @); }'
begun() { timeout 60 await 'begun|failed' /tmp/told; }
told() { echo "$1 $(grep -o -e '^[a-z ]*[0-9][0-9]*$' -e 'failed to grab process' /tmp/told)"; rm -f /tmp/told /tmp/go; }
# traced WHO: traces the process $one, which waits for /tmp/go.
traced() {
	as 77 dtrace -n "$pid" -q -p "$one" >/tmp/told 2>&1 &
	begun; touch /tmp/go; wait; told "$1"
}
echo 1 >$scope
own /tmp/work mark /tmp/ready await /tmp/go steps & one=$!
ready; traced stranger
own /tmp/work ptracer any mark /tmp/ready await /tmp/go steps & one=$!
ready; traced named
own /tmp/work ptracer any mark /tmp/ready await /tmp/go steps ptracer none steps ptracer any steps & one=$!
ready; traced 'named, and not, and named'
as 77 dtrace -qn "$pid" -c '/tmp/work steps' >/tmp/told 2>&1; told child
# Of two processes that make the same calls, only the descendant is traced.
cp /tmp/work /tmp/not-below
own /tmp/not-below mark /tmp/ready await /tmp/go steps mark /tmp/done & one=$!
ready
as 77 dtrace -qn "$calls" -c '/tmp/work steps mark /tmp/go await /tmp/done' >/tmp/told 2>&1; told calls
rm -f /tmp/done; wait
# If a consumer passes its file to another process and then executes a program, the holder of the
# file does not see it, because it may not attach to it.
copied='syscall::sched_get_priority_max:entry { @[execname] = count(); } END { printa("%s %@d\n", @); printf("ended 0\n"); }'
LD_PRELOAD=$seat SEAT=exec own dtrace -qn "$copied" >/tmp/told 2>&1 &
timeout 60 await ended /tmp/told
touch /tmp/go; wait; told executed
rm -f /tmp/stepped
# If the threads that made the calls have exited, including the first, nothing is checked in them.
(LD_PRELOAD=$seat SEAT=ended own dtrace -qn "$calls" >/tmp/told 2>&1)
sleep 1
for n in 1 2 3; do as 77 /tmp/work steps && echo "stepped $n"; done
touch /tmp/go; wait; sleep 1; rm -f /tmp/go /tmp/told
# Scope 3 cannot be reset; 2 is for administrators.
echo 2 >$scope
own /tmp/work ptracer any mark /tmp/ready await /tmp/go steps & one=$!
ready; traced administrators
# Permissions are checked again after the policy has changed.
echo 0 >$scope
own /tmp/work mark /tmp/ready await /tmp/go steps await /tmp/more steps & one=$!
ready
as 77 dtrace -qn "$pid" -p $one >/tmp/told 2>&1 &
begun; touch /tmp/go; sleep 2; echo 1 >$scope; touch /tmp/more; wait; told raised
# A reader of a pipe without input, which is to be checked on its way to user mode, does not keep
# the module loaded.
echo 0 >$scope
mkfifo /tmp/pipe; exec 9<>/tmp/pipe
(own bash -c 'echo >/tmp/ready; read -rn 3 word' </tmp/pipe) & one=$!
ready
own dtrace -qn 'syscall::read:entry /execname == "bash"/ { printf("read 1\n"); } BEGIN { printf("begun\n"); }' >/tmp/told 2>&1 & member=$!
begun; printf x >&9
timeout 60 await read /tmp/told
# It is unknown under the new policy, and its next read() waits.
echo 1 >$scope; printf x >&9; sleep 1
kill -9 $member; wait $member 2>/dev/null
(sleep 30; touch /tmp/late; echo >/tmp/pipe) & late=$!
rmmod dtrace && [ ! -e /tmp/late ] && echo 'gone under a reader'
kill $late; echo >&9; exec 9>&-; wait
rm -f /tmp/pipe /tmp/late /tmp/ready
insmod "$(cat /run/vm/module)"
echo 0 >$scope
rm -f /tmp/work /tmp/not-below /tmp/more /tmp/seat.so
rmmod dtrace && insmod "$(cat /run/vm/module)"
