# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# @limit: 180
# A member of the group can place probes in the processes to which he could attach a debugger, and
# in no others.
. ./member
rmmod dtrace && insmod "$(cat /run/vm/module)" group=77
chmod 666 /dev/dtrace
cp "$(command -v rights-work)" /tmp/work
# Copies that anybody can reach, in a sandbox too.
cp "$(command -v dtrace)" "$(command -v device-check)" /tmp
cp -a /tmp/work /tmp/setuid && chmod 4755 /tmp/setuid
cp -a /tmp/work /tmp/secret && chmod 711 /tmp/secret
pid='pid$target:work:step:entry { @ = count(); } END { printa("%@d\n", @); }'
usdt='rights$target:::step { @ = count(); } END { printa("%@d\n", @); }'
calls='syscall::sched_get_priority_max:entry { @[execname] = count(); } END { printa("%s %@d\n", @); }'
# traced PID WHO: has the member trace a process, and then lets that continue; prints what was
# counted, or that tracing was refused, and the kernel's answer to a request for probes there.
traced() {
	text=$(awk '$2 ~ /x/ { sub(/-.*/, "", $1); print $1; exit }' /proc/$1/maps)
	said=$(as 77 device-check place "$1" "$text" 1 </dev/null)
	as 77 dtrace -n "$pid" -n 'BEGIN { printf("begun\n"); }' -q -p "$1" >/tmp/told 2>&1 &
	timeout 60 await 'begun|failed' /tmp/told
	touch /tmp/go
	wait
	echo "$2 $(grep -o -e '^[0-9][0-9]*$' -e 'failed to [a-z]* [a-z]*' /tmp/told), $said"
	rm -f /tmp/go /tmp/told
}

echo his own
as 77 dtrace -qn "$pid" -c '/tmp/work steps' | grep .
as 77 dtrace -qn "$usdt" -c '/tmp/work steps' | grep .
own /tmp/work mark /tmp/ready await /tmp/go steps & pid_of=$!
ready; traced $pid_of own

echo others
/tmp/work mark /tmp/ready await /tmp/go steps & pid_of=$!
ready; traced $pid_of root
setpriv --reuid 65533 --regid 77 --clear-groups /tmp/work mark /tmp/ready await /tmp/go steps & pid_of=$!
ready; traced $pid_of "another user"
setpriv --reuid 65534 --regid 88 --clear-groups /tmp/work mark /tmp/ready await /tmp/go steps & pid_of=$!
ready; traced $pid_of "another group"
own /tmp/setuid mark /tmp/ready await /tmp/go steps & pid_of=$!
ready; traced $pid_of set-user
# Executed by a user who cannot read it.
own sh -c 'exec /tmp/secret mark /tmp/ready await /tmp/go steps' & pid_of=$!
ready; traced $pid_of unreadable
own /tmp/work undumpable mark /tmp/ready await /tmp/go steps & pid_of=$!
ready; traced $pid_of undumpable
as 77 dtrace -n "$pid" -p 1 2>&1 | grep -o -e 'failed to grab process'

echo what root traces
dtrace -qn 'pid$target:work:step:entry { @ = count(); }' -c '/tmp/work mark /tmp/ready await /tmp/go' >/dev/null &
ready
as 77 dtrace -ln 'pid*:work:step:entry' 2>&1 | grep -c 'step entry'
as 77 dtrace -qn 'pid*:work:step:entry { trace(pid); }' 2>&1 | grep -o -e 'no right to trace.*' -e 'does not match any probes'
dtrace -ln 'pid*:work:step:entry' 2>&1 | grep -c 'step entry'
touch /tmp/go; wait; rm /tmp/go

echo made by root
# The member's pattern gets probes that root creates, but only in his own process.
own /tmp/work mark /tmp/ready await /tmp/go steps & pid_of=$!
ready
/tmp/work mark /tmp/ready await /tmp/go steps & other=$!
ready
as 77 dtrace -Zqn 'pid*:work:step:entry { @[uid] = count(); } BEGIN { printf("begun\n"); } END { printa("%d %@d\n", @); }
	syscall::unlinkat:entry /execname == "rm"/ { exit(0); }' >/tmp/told 2>&1 & member=$!
timeout 60 await begun /tmp/told
dtrace -qn "pid$pid_of:work:step:entry, pid$other:work:step:entry { @ = count(); } BEGIN { printf(\"begun\n\"); }
	END { printa(\"all %@d\n\", @); }" -p $pid_of -p $other >/tmp/all 2>&1 & all=$!
timeout 60 await begun /tmp/all
touch /tmp/go; wait $pid_of $other $all
touch /tmp/x; as 77 sh -c 'rm -f /tmp/x; exec rm -f /tmp/x' 2>/dev/null
wait $member
grep -v begun /tmp/all | grep .; grep -v begun /tmp/told | grep .
rm -f /tmp/go /tmp/all /tmp/told /tmp/x

echo later
# A process that changes its identity is not traced any more from that moment on; nothing is missing
# while it is still his.
as 77 dtrace -qn "$calls" -c '/tmp/work steps exec /tmp/setuid steps' | grep .
as 77 dtrace -qn "$pid" -c '/tmp/work steps exec /tmp/setuid steps' | grep .
as 77 dtrace -qn "$usdt" -c '/tmp/work steps exec /tmp/setuid steps' | grep .
as 77 dtrace -qn "$calls" -c '/tmp/work steps exec /tmp/work steps undumpable steps dumpable steps' | grep .
as 77 dtrace -qn "$pid" -c '/tmp/work steps namespace steps' | grep .
as 77 dtrace -qn "$pid" -c '/tmp/work steps sandbox steps' | grep .
# A consumer that may change its user ID can trace a process that may too, until that has changed
# it.
able=(setpriv --reuid 65534 --regid 77 --clear-groups --inh-caps +setuid --ambient-caps +setuid)
for clause in "$calls" "$pid" "$usdt"; do
	"${able[@]}" dtrace -qn "$clause" -c '/tmp/work steps user 65534 steps user 65533 dumpable steps' | grep .
done
# But a consumer in a sandbox cannot trace a process that is not in the sandbox.
own /tmp/work mark /tmp/ready await /tmp/go steps & pid_of=$!
ready
text=$(awk '$2 ~ /x/ { sub(/-.*/, "", $1); print $1; exit }' /proc/$pid_of/maps)
as 77 /tmp/work sandbox exec /tmp/dtrace -n "$pid" -p $pid_of 2>&1 | grep -o -e 'failed to grab process'
as 77 /tmp/work sandbox exec /tmp/device-check place $pid_of "$text" 1 </dev/null
as 77 /tmp/work sandbox exec /tmp/dtrace -qn "$pid" -c '/tmp/work steps' 2>&1 | grep .
as 77 /tmp/work sandbox exec /tmp/dtrace -qn "$calls" -c '/tmp/work mark /tmp/go steps' 2>&1 | grep .
wait
rm -f /tmp/go /tmp/dtrace /tmp/device-check /tmp/work /tmp/setuid /tmp/secret
rmmod dtrace && insmod "$(cat /run/vm/module)"
