# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: GPL-2.0-only
#
# @limit: 300
# Breakpoints that are written into one process: its children and neighbours, other uprobes, debuggers, text that moves, and the module's end.
tracing=/sys/kernel/tracing
own=/sys/module/dtrace/parameters/own_breakpoints
echo Y >$own
mkfifo /tmp/words
pid-own serve </tmp/words >/tmp/said &
target=$!
exec 3>/tmp/words
until grep -q ready /tmp/said; do sleep 0.1; done
work=$(awk '$1 == "ready" { print $2 }' /tmp/said)

# say WORD: has the program do it, and shows what it says.
say() {
	local had
	had=$(wc -l </tmp/said)
	echo "$1" >&3
	until [ "$(wc -l </tmp/said)" -gt "$had" ]; do
		kill -0 $target 2>/dev/null || { echo "the program has gone"; return; }
		sleep 0.05
	done
	tail -n +$((had + 1)) /tmp/said
}

# trace PROGRAM: starts to trace the program; ended [SIGNAL] ends that.
trace() {
	dtrace -qn "$1" -n 'BEGIN { printf("traced\n"); }' -p $target >/tmp/traced 2>&1 &
	tracer=$!
	until grep -q traced /tmp/traced || ! kill -0 $tracer 2>/dev/null; do sleep 0.1; done
}
ended() {
	kill "-${1:-TERM}" $tracer
	wait $tracer 2>/dev/null
	grep -v traced /tmp/traced | grep .
}
calls='pid$target:a.out:work:entry { @in = count(); } pid$target:a.out:work:return { @out = count(); }
END { printa("in %@d\n", @in); printa("out %@d\n", @out); }'
# How many uprobes were registered while the rest of the line was done.
registers() {
	dtrace -qn 'fbt::uprobe_register:entry { @ = count(); } BEGIN { printf("ready\n"); } END { printa("registered %@d\n", @); }' >/tmp/registered &
	local counter=$!
	until grep -q ready /tmp/registered; do sleep 0.1; done
	"$@"
	kill $counter
	wait $counter
	grep registered /tmp/registered || echo 'registered none'
}

echo 'one process'
pid-own serve </dev/null >/dev/null &
sleep 0.2
pid-own serve < <(sleep 1; echo text; echo run) >/tmp/neighbour &
neighbour=$!
registers trace "$calls"
say run
say text
wait $neighbour
tail -n +2 /tmp/neighbour
ended
say text

echo 'without'
echo N >/sys/module/dtrace/parameters/own_breakpoints
registers trace "$calls"
say run
ended
echo Y >/sys/module/dtrace/parameters/own_breakpoints

echo 'children'
trace "$calls"
say forks
say run
ended

echo 'threads and signals'
trace "$calls"
say threads
ended

echo 'text that moves'
trace "$calls"
say moves
ended
say run

echo 'a uprobe after'
trace "$calls"
say run
base=$(sed -n '/pid-own/ { s/-.*//p; q }' /proc/$target/maps)
printf 'p:after %s:0x%x\n' "$(command -v pid-own)" $((0x$work - 0x$base)) >$tracing/uprobe_events
echo 1 >$tracing/events/uprobes/after/enable
say run
say forks
echo 0 >$tracing/events/uprobes/after/enable
awk '$2 == "after" { print "of the uprobe", $3 }' $tracing/uprobe_profile
say run
ended
say run

echo 'a uprobe that nobody meets'
trace "$calls"
echo 1 >$tracing/events/uprobes/after/enable
echo 0 >$tracing/events/uprobes/after/enable
say run
ended
echo 'a uprobe before'
echo 1 >$tracing/events/uprobes/after/enable
trace "$calls"
say run
echo 0 >$tracing/events/uprobes/after/enable
say run
ended
say text
echo >$tracing/uprobe_events

echo 'a debugger before'
pid-own debug $target "$work" >/tmp/debugged &
debugger=$!
until grep -q found /tmp/debugged; do sleep 0.1; done
trace "$calls"
sed 's/pid[0-9][0-9]*/pidN/g' /tmp/traced
kill $tracer 2>/dev/null
wait $tracer 2>/dev/null
kill -USR1 $debugger
wait $debugger
cat /tmp/debugged
say run

echo 'text that is not as in the file'
pid-own debug $target $(printf %x $((0x$work + 2))) >/tmp/debugged &
debugger=$!
until grep -q found /tmp/debugged; do sleep 0.1; done
dtrace -qn 'pid$target:a.out:work:1 { @ = count(); }' -p $target 2>&1 | sed 's/pid[0-9][0-9]*/pidN/g'
kill -USR1 $debugger
wait $debugger
say run

echo 'a debugger after'
trace "$calls"
pid-own debug $target "$work" >/tmp/debugged &
debugger=$!
until grep -q found /tmp/debugged; do sleep 0.1; done
say run
ended
kill -USR1 $debugger
wait $debugger
cat /tmp/debugged
say text
say run
say text

echo 'a consumer that is killed'
trace "$calls"
say child
echo busy >&3
sleep 1
ended KILL
say text
say run

echo 'the module goes'
trace "$calls"
say child
echo busy >&3
sleep 0.5
ended KILL
rmmod dtrace
say text
say run
say forks
insmod "$(cat /run/vm/module)"
echo Y >$own
trace "$calls"
say run
ended
exec 3>&-
wait $target
echo N >$own
