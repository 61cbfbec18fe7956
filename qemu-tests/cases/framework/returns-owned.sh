# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# @limit: 120
# @slow: it makes thousands of calls sleep
# The number of hooked returns at a time is limited by the number of hooks. A user who traces all
# returns of system calls takes hooks for his own processes alone: other users keep theirs, however
# many of their calls sleep. Only the consumer whose returns could not be hooked is notified.
. ./member
rmmod dtrace && insmod "$(cat /run/vm/module)" group=77
chmod 666 /dev/dtrace
hooks=$(awk '/^MemTotal/ { n = int($2 / 4 / 64); print (n < 8192 ? 8192 : n) }' /proc/meminfo)
echo 100000 >/proc/sys/kernel/threads-max
ulimit -u unlimited
# asleep [own]: starts more sleeping calls than there are hooks, until `awake`.
asleep() {
	mkfifo /tmp/input
	rm -f /tmp/asleep
	"$@" sleepers-owned $((hooks + 500)) </tmp/input >/tmp/asleep & sleepers=$!
	exec 7>/tmp/input
	timeout 100 await asleep /tmp/asleep || echo 'not asleep'
}
awake() {
	exec 7>&-
	wait $sleepers
	rm /tmp/input
}
# begin NAME COMMAND...: starts it as $tracer, in the background, and waits until it traces.
begin() {
	: >"/tmp/$1"
	chmod 666 "/tmp/$1"
	"${@:2}" >"/tmp/$1" 2>&1 & tracer=$!
	timeout 60 await begun /tmp/$1
}
# few: counts the returns that were seen and lost of other calls that sleep at the same time.
counted='BEGIN { @ = sum(0); } syscall::read:return /pid == $target && tid != $target/ { @ = sum(1); } END { printa("%@d\n", @); }'
few() {
	dtrace -qn "$counted" -c 'sleepers-owned 600' </dev/null >/tmp/few 2>&1
	seen=$(grep -x '[0-9]*' /tmp/few)
	lost=$(drops /tmp/few)
}
drops() { sed -n 's/.* \([0-9]*\) drops of returns.*/\1/p' "$1" | paste -sd+ | bc; }
every='BEGIN { printf("begun\n"); } syscall:::return /execname == "sleepers-owned"/ { n++; } END { printf("%d\n", n); }'

echo '# a user traces every return'
begin member own dtrace -qn "$every"
asleep
few
echo "seen: $seen, lost: ${lost:-none}"
awake
kill $tracer
wait $tracer
grep . /tmp/member

echo '# and has as many calls asleep himself'
begin member own dtrace -qn "$every"
asleep own
few
echo "seen: $seen, lost: ${lost:-none}"
awake
kill $tracer
wait $tracer
[ "$(drops /tmp/member)" -ge $((hooks * 7 / 8)) ] && echo 'he was told of what he lost'

echo '# so does root'
begin root dtrace -qn "$every"
asleep
few
dtrace -qn 'BEGIN { printf("nothing lost\n"); } tick-2s { exit(0); }' >/tmp/other 2>&1
awake
kill $tracer
wait $tracer
# Hooks that other calls have just freed are available.
[ "$seen" -lt 300 ] && [ $((600 - seen)) -le "$lost" ] && echo 'what is missing was lost, and told'
grep . /tmp/other
[ "$(drops /tmp/root)" -ge 500 ] && echo 'root was told'
rmmod dtrace && insmod "$(cat /run/vm/module)"
