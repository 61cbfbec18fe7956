# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# @limit: 90
# A virtual machine stands still for a second, several times, usually in the middle of a firing:
# elapsed time counts for the budget of a user's clauses, but not time in which nothing is executed.
# No event is lost, and no tracing is killed.
. ./member
rmmod dtrace && insmod "$(cat /run/vm/module)" group=77
chmod 666 /dev/dtrace
cp "$(command -v overload)" /tmp/overload
at='syscall::sched_get_priority_max:entry /execname == "overload"/'
# Each clause compares a few hundred thousand bytes.
printf 'inline string hay = "%03000d"; inline string needle = "%090d1";\n' 0 0 >/tmp/heavy.d
cat >>/tmp/heavy.d <<end
$at { @ = sum(strstr(hay, needle) == NULL); }
tick-10ms { ticks++; }
BEGIN { printf("begun\n"); }
END { printf("%s", ticks > 0 ? "it ticked\n" : "no tick\n"); }
end
# begin NAME COMMAND...: starts it in the background, as $tracer, and waits until it traces.
begin() {
	"${@:2}" -x strsize=32k -qs /tmp/heavy.d -o "/tmp/$1" 2>"/tmp/$1.err" & tracer=$!
	timeout 60 await begun /tmp/$1
}
touch /tmp/user{,.err} && chmod 666 /tmp/user{,.err}
begin user own dtrace && first=$tracer
begin root dtrace && second=$tracer
touch /tmp/busy
(while [ -e /tmp/busy ]; do as 77 /tmp/overload 100; done) >/tmp/calls & busy=$!
for _ in 1 2 3 4 5; do
	sleep 0.5
	before=$(date +%s%N)
	echo 1000 >/run/vm/stand-still
	while [ -e /run/vm/stand-still ]; do sleep 0.01; done
	stood=$((stood + $(date +%s%N) - before))
done
rm /tmp/busy
wait $busy
echo "it stood still for more than four seconds: $((stood > 4000000000))"
kill $first $second
wait
calls=$(awk '{ sum += $2 } END { print sum }' /tmp/calls)
count() { grep -o '^ *[0-9]*$' "/tmp/$1" | tr -d ' ' | grep . | tail -n 1; }
for whose in user root; do
	grep ticked "/tmp/$whose"
	echo "$whose: $((calls - $(count $whose))) are missing, $((calls > 0))"
	cat "/tmp/$whose.err"
done
