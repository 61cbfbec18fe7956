# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: GPL-2.0-only
#
# @limit: 180
# @debug: quick
# Where Yama lets a process be traced by its ancestors only, or by whom it has named, so do we.
. ./member
rmmod dtrace && insmod "$(cat /run/vm/module)" group=77
chmod 666 /dev/dtrace
cp "$(command -v rights-work)" /tmp/work
scope=/proc/sys/kernel/yama/ptrace_scope
pid='pid$target:work:step:entry { @ = count(); } BEGIN { printf("begun\n"); } END { printa("%@d\n", @); }'
calls='syscall::sched_get_priority_max:entry { @[execname] = count(); } BEGIN { printf("begun\n"); } END { printa("%s %@d\n", @); }'
begun() { timeout 60 sh -c 'until grep -q -e begun -e failed /tmp/told; do sleep 0.1; done'; }
told() { echo "$1 $(grep -o -e '^[a-z ]*[0-9][0-9]*$' -e 'failed to grab process' /tmp/told)"; rm -f /tmp/told /tmp/go; }
# traced WHO: the process $one, which waits to be let go.
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
# Of two that do the same, the descendant.
cp /tmp/work /tmp/other
own /tmp/other mark /tmp/ready await /tmp/go steps mark /tmp/done & one=$!
ready
as 77 dtrace -qn "$calls" -c '/tmp/work steps mark /tmp/go await /tmp/done' >/tmp/told 2>&1; told calls
rm -f /tmp/done; wait
# Scope 3 is for ever; 2 is for administrators.
echo 2 >$scope
own /tmp/work ptracer any mark /tmp/ready await /tmp/go steps & one=$!
ready; traced administrators
# What was allowed before is asked again.
echo 0 >$scope
own /tmp/work mark /tmp/ready await /tmp/go steps await /tmp/more steps & one=$!
ready
as 77 dtrace -qn "$pid" -p $one >/tmp/told 2>&1 &
begun; touch /tmp/go; sleep 2; echo 1 >$scope; touch /tmp/more; wait; told raised
echo 0 >$scope
rm -f /tmp/work /tmp/other /tmp/more
rmmod dtrace && insmod "$(cat /run/vm/module)"
