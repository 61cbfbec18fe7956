# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# @limit: 120
# The numbers of places in processes for a user, and for a consumer of root, are limited: one more
# is refused, with the name of the limit, and places that are given up, in whatever way, can be had
# again.
. ./member
# load [PARAMETER...]: loads the module again.
load() {
	rmmod dtrace && insmod "$(cat /run/vm/module)" group=77 "$@"
	chmod 666 /dev/dtrace
}
cp "$(command -v rights-work)" /tmp/work
mkfifo /tmp/never
sled=$(eu-readelf -s /tmp/work | awk '$NF == "sled" { print $2; exit }')
# start UID: starts a process of that user, $one; from $text on it has 2,048 instructions of a byte.
start() {
	(exec setpriv --reuid "$1" --regid 77 --clear-groups /tmp/work mark /tmp/ready await /tmp/go) & one=$!
	ready
	text=$(printf %x $((0x$(awk -F- '{ print $1; exit }' /proc/$one/maps) + 0x$sled)))
}
# at N: the address of an instruction of these.
at() { printf %x $((0x$text + $1)); }
# place COUNT: has the member create that many probes, and remove them.
place() { as 77 device-check place $one "$(at 1000)" "$1" </dev/null; }
told() { timeout 60 sh -c 'until [ -s /tmp/told ]; do sleep 0.1; done'; cat /tmp/told; }
# keep COMMAND... ARGUMENT...: the same in the background, as $kept; the probes stay until it ends.
keep() {
	rm -f /tmp/told
	(exec "$@" <>/tmp/never >/tmp/told) & kept=$!
	told
}
give_up() { kill "$1" && wait "$1" 2>/dev/null; }
member=(setpriv --reuid 65534 --regid 77 --clear-groups device-check place)

echo unless it is told
load
start 65534
place 1001
place 1000
kill $one && wait $one 2>/dev/null
load user_places=100 consumer_places=150
echo one consumer
start 65534
place 101
place 100
keep "${member[@]}" $one "$text" 60 && first=$kept
place 41
place 40
place 40
echo two consumers
keep "${member[@]}" $one "$(at 500)" 40 && second=$kept
place 1
give_up $first
place 61
place 60
give_up $second
echo another user
mine=$one mine_text=$text
keep "${member[@]}" $mine "$text" 100 && first=$kept
start 65533
setpriv --reuid 65533 --regid 77 --clear-groups device-check place $one "$text" 100 </dev/null
give_up $first
echo where root traces
# An instruction has room for a member's probe beside root's.
keep device-check place $mine "$(printf %x $((0x$mine_text + 2000)))" 1 && root=$kept
"${member[@]}" $mine "$(printf %x $((0x$mine_text + 2000)))" 1 </dev/null
keep "${member[@]}" $mine "$mine_text" 100 && first=$kept
one=$mine text=$mine_text
place 1
give_up $first
place 101
place 100
give_up $root
echo a process that has ended
start 65534
keep "${member[@]}" $one "$text" 100 $mine "$mine_text" 100 && first=$kept
kill $one && wait $one 2>/dev/null
echo >/tmp/never
timeout 60 sh -c 'until [ "$(wc -l </tmp/told)" = 2 ]; do sleep 0.1; done'
tail -n 1 /tmp/told
one=$mine text=$mine_text
place 1
give_up $first
echo a probe comes again where others stay at its instruction
rm -f /tmp/told
dtrace -qn 'pid$target:work:step: { @ = count(); } BEGIN { printf("begun\n"); }' -p $one >/tmp/told 2>&1 & root=$!
told
for n in 1 2; do
	as 77 dtrace -qn 'rights$target:::step { @ = count(); } BEGIN { exit(0); } END { printf("ended\n"); }' -p $one | grep .
done
give_up $root
echo root
device-check place $one "$text" 151 </dev/null
keep device-check place $one "$text" 150 && first=$kept
device-check place $one "$(at 500)" 150 </dev/null
give_up $first
echo command
as 77 dtrace -qn 'pid$target:libc.so.6::entry { exit(0); }' -c '/tmp/work steps' 2>&1 | sed 's/.*: a user may/a user may/'
as 77 dtrace -qn 'pid$target:work:step: { @ = count(); } END { printa("%@d\n", @); }' -c '/tmp/work steps' | grep -c '^[1-9][0-9]*$'
echo tracings
as 77 device-check tracings 64
as 77 device-check tracings 65
device-check tracings 100
touch /tmp/go; wait
rm -f /tmp/go /tmp/told /tmp/never /tmp/work
rmmod dtrace && insmod "$(cat /run/vm/module)"
