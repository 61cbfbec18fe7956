# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# @limit: 120
# The work of users' clauses in one firing is limited, for all of them together. The consumer that
# does most of it is killed; what the other users' clauses do not get to for lack of time is counted
# as drops. Consumers that may see everything are not affected, wherever they are in the order.
. ./member
rmmod dtrace && insmod "$(cat /run/vm/module)" group=77
chmod 666 /dev/dtrace
cp "$(command -v overload)" /tmp/overload
at='syscall::sched_get_priority_max:entry /execname == "overload"/'
# Each clause compares nearly three million bytes.
{
	printf 'inline string hay = "%030000d"; inline string needle = "%090d1";\n' 0 0
	for _ in 1 2 3 4; do echo "$at { @ = sum(strstr(hay, needle) == NULL); }"; done
	echo 'BEGIN { printf("begun\n"); }'
} >/tmp/heavy.d
light="$at { @ = count(); } BEGIN { printf(\"begun\\n\"); }"
# begin NAME COMMAND...: starts it in the background, as $tracer, and waits until it traces.
begin() {
	"${@:2}" -o "/tmp/$1" 2>"/tmp/$1.err" & tracer=$!
	timeout 60 await begun /tmp/$1
}
member=(own dtrace -x statusrate=100ms -q)
touch /tmp/{heavy,light}{,.err} && chmod 666 /tmp/{heavy,light}{,.err}
begin heavy "${member[@]}" -x strsize=32k -s /tmp/heavy.d && first=$tracer
begin light "${member[@]}" -n "$light" && second=$tracer
begin root dtrace -qn "$light" && third=$tracer
calls=$(as 77 /tmp/overload 1000 | grep -o "[0-9]*")
# Drops are reported before it is killed.
timeout 60 await unresponsiveness /tmp/heavy.err
# The first consumer has ended by itself.
kill $second $third
kill $first 2>/dev/null
wait
# A clause that is aborted is a fault, and there is no time for ERROR clauses either.
sed '/^$/d; / drops\{0,1\} on CPU /d' /tmp/heavy.err
count() { grep -o '[0-9]*' "/tmp/$1" | tail -n 1; }
drops=$(sed -n 's/.* \([0-9]*\) drops\{0,1\} on CPU .*/\1/p' /tmp/light.err | paste -sd+ | bc)
echo "root: $((calls - $(count root))) of $((calls / $(nproc))) on each processor are missing"
echo "light: $((calls - $(count light) - drops)) are missing, $((drops > 0 && drops <= $(nproc))) were dropped"
# Everything that fires at one instruction of a program, of whatever kind, is one firing, and so is
# its rehearsal, which happens because it loads the program's memory.
for kinds in main:entry 'main:entry main:entry main:0 main:0'; do
	{
		printf 'inline string hay = "%030000d"; inline string needle = "%090d1";\n' 0 0
		for kind in $kinds; do
			echo "pid\$target:a.out:$kind { this->byte = copyin(uregs[R_RSP], 1); @ = sum(strstr(hay, needle) == NULL); }"
		done
	} >/tmp/heavy.d
	echo "# $kinds"
	as 77 dtrace -x strsize=32k -x statusrate=100ms -qs /tmp/heavy.d -c '/tmp/overload 1' 2>&1 | sed '/^$/d; / drops\{0,1\} on CPU /d; s/^calls .*/calls/'
done
rm -f /tmp/heavy* /tmp/light* /tmp/root*
