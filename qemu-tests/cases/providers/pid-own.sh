# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# @limit: 600
# Breakpoints that are written into one process: its children and neighbours, other uprobes,
# debuggers, text that moves, and unloading the module.
tracing=/sys/kernel/tracing
own=/sys/module/dtrace/parameters/own_breakpoints
mkfifo /tmp/words /tmp/words2 /tmp/answers
# fresh: starts a new process, in which nothing has been changed yet.
fresh() {
	: >/tmp/said
	pid-own serve </tmp/words >/tmp/answers &
	target=$!
	exec 3>/tmp/words 4</tmp/answers
	read -r _ work offset counter < <(answers ready)
}
finish() {
	exec 3>&- 4<&-
	wait $target
}
# section NAME: continues with a new process.
section() {
	finish
	echo "$1"
	fresh
}
# answers ANSWER: prints what the program says, up to a line that begins so; /tmp/said keeps it.
answers() {
	local line
	while read -r -t 60 line <&4; do
		echo "$line"
		echo "$line" >>/tmp/said
		case $line in "$1"*) return ;; esac
	done
	echo "the program has gone"
}
fresh

# say WORD [ANSWER]: has the program do it, and prints what it says up to the answer, by default the
# word.
say() {
	echo "$1" >&3
	answers "${2:-$1}"
}

# trace PROGRAM: starts tracing the process with a D program; ended [SIGNAL] ends that.
trace() {
	dtrace -qn "$1" -n 'BEGIN { printf("traced\n"); }' -p $target >/tmp/traced 2>&1 &
	tracer=$!
	await -p $tracer traced /tmp/traced
}
ended() {
	kill "-${1:-TERM}" $tracer
	wait $tracer 2>/dev/null
	grep -v traced /tmp/traced | grep .
}
calls='pid$target:a.out:work:entry { @in = count(); } pid$target:a.out:work:return { @out = count(); }
END { printa("in %@d\n", @in); printa("out %@d\n", @out); }'
# registers COMMAND...: prints how many uprobes were registered while the command ran.
registers() {
	dtrace -qn 'fbt::uprobe_register:entry { @ = count(); } BEGIN { printf("ready\n"); } END { printa("registered %@d\n", @); }' >/tmp/registered &
	local counter=$!
	await ready /tmp/registered
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
echo N >$own
registers trace "$calls"
say run
ended
echo Y >$own

section 'children'
trace "$calls"
say forks
say run
ended

section 'threads and signals'
trace "$calls"
say threads
ended

section 'text that moves'
trace "$calls"
say moves
ended
say run

section 'a uprobe after'
trace "$calls"
say run
printf 'p:after %s:0x%s\n' "$(command -v pid-own)" "$offset" >$tracing/uprobe_events
echo 1 >$tracing/events/uprobes/after/enable
say run
say forks
echo 0 >$tracing/events/uprobes/after/enable
awk '$2 == "after" { print "of the uprobe", $3 }' $tracing/uprobe_profile
say run
ended
say run

section 'a uprobe that nobody meets'
trace "$calls"
echo 1 >$tracing/events/uprobes/after/enable
echo 0 >$tracing/events/uprobes/after/enable
say run
ended
section 'a uprobe before'
echo 1 >$tracing/events/uprobes/after/enable
trace "$calls"
say run
echo 0 >$tracing/events/uprobes/after/enable
say run
ended
say text
echo >$tracing/uprobe_events
registers trace "$calls"
say run
ended

section 'a uprobe of one process, before the place is known by another'
# watch PID: starts counting in that process; seen ends that.
watch() {
	pid-own watch "$1" "$offset" >/tmp/watched &
	watcher=$!
	await -p $watcher watching /tmp/watched
}
seen() {
	kill -USR1 $watcher
	await -p $watcher seen /tmp/watched
	grep seen /tmp/watched
}
watch $target
trace 'pid$target:a.out:other:entry { @ = count(); } END { printa("other %@d\n", @); }'
pid-own serve <>/tmp/words2 >/tmp/neighbour &
neighbour=$!
await ready /tmp/neighbour
dtrace -qn 'pid$target:a.out:work:entry { @ = count(); } BEGIN { printf("ready\n"); }' -p $neighbour >/tmp/second &
second=$!
await ready /tmp/second
say run
say forks
say threads
say other
ended
say run
say threads
seen
kill $second $neighbour
wait $second $neighbour
say text

section 'a uprobe with a counter'
printf 'p:counted %s:0x%s(0x%s)\n' "$(command -v pid-own)" "$offset" "$counter" >$tracing/uprobe_events
trace "$calls"
echo 1 >$tracing/events/uprobes/counted/enable
say other
echo 0 >$tracing/events/uprobes/counted/enable
say other
say run
ended
trace "$calls"
echo 1 >$tracing/events/uprobes/counted/enable
say run
say forks
say other
ended
say run
awk '$2 == "counted" { print "of the uprobe", $3 }' $tracing/uprobe_profile
echo 0 >$tracing/events/uprobes/counted/enable
echo >$tracing/uprobe_events
say text
say run

section 'text that is away while a uprobe goes'
printf 'p:after %s:0x%s\n' "$(command -v pid-own)" "$offset" >$tracing/uprobe_events
trace "$calls"
echo 1 >$tracing/events/uprobes/after/enable
say away
echo 0 >$tracing/events/uprobes/after/enable
say back
ended
say run
say text
echo >$tracing/uprobe_events

section 'a storm of children'
# A kernel with debugging options keeps memories of ended processes: fill that before.
say storm >/dev/null
trace "$calls"
say storm
ended

section 'breakpoints of its own'
trace "$calls"
say traps
ended
say traps

section 'text that may be written to'
trace "$calls"
say writable
ended >/tmp/lost
sed 's/[12] probe.* could/probes could/' /tmp/lost | uniq
say text
say run

section 'text that is there twice'
trace "$calls"
say twice
ended
say copied
say run

section 'a debugger of a child'
trace "$calls"
say kid born | sed 's/[0-9][0-9]*/N/'
kid=$(sed -n 's/born //p' /tmp/said)
ended
sleep 1
pid-own debug $kid "$work" >/tmp/debugged &
debugger=$!
await found /tmp/debugged
: >/tmp/go
await '^State:.*tracing stop' /proc/$kid/status
kill -USR1 $debugger
wait $debugger
cat /tmp/debugged
answers kid
say run

# debugs [HOW]: attaches a debugger, which steps over its breakpoint at the same place as the
# module's, unless HOW says otherwise; put_back: detaches it.
debugs() {
	rm -f /tmp/debugged
	pid-own debug $target "$work" "${1:-steps}" >/tmp/debugged &
	debugger=$!
	await found /tmp/debugged
}
put_back() {
	kill -USR1 $debugger
	wait $debugger
	cat /tmp/debugged
}

section 'a debugger before'
debugs
trace "$calls"
say run
put_back
say run
say text
ended
say text
say run

section 'a debugger before, who stays'
debugs
trace "$calls"
say run
ended
say run
put_back
say text
say run

section 'text that is not as in the file'
pid-own debug $target $(printf %x $((0x$work + 2))) >/tmp/debugged &
debugger=$!
await found /tmp/debugged
dtrace -qn 'pid$target:a.out:work:1 { @ = count(); }' -p $target 2>&1 | sed 's/pid[0-9][0-9]*/pidN/g'
kill -USR1 $debugger
wait $debugger
say run

section 'a debugger after'
trace "$calls"
debugs
say run
put_back
say run
ended
say text
say run

section 'a debugger after, who stays'
trace "$calls"
debugs
say run
ended
say run
put_back
say text
say run

section 'a debugger who makes other instructions of them'
trace 'pid$target:a.out:work:1 { n++; } pid$target:a.out:work:4 { @four = count(); } END { printf("one %s\n", n >= 100 ? "100" : "less"); printa("four %@d\n", @four); }'
say run
debugs replaces
say run
put_back
sleep 2
say run
ended >/tmp/lost
sed 's/[12] probe.* could/probes could/' /tmp/lost | uniq
say run

section 'a debugger who reads what is there'
trace "$calls"
say run
pid-own debug $target "$work" copies
say run
ended
say text
say run

section 'a debugger who is killed at his breakpoint'
trace "$calls"
debugs
say run
kill -KILL $debugger
wait $debugger 2>/dev/null
# Its breakpoint would kill the program if the module had none there.
say run
ended
say text
say run

section 'a consumer that is killed'
trace "$calls"
say child
echo busy >&3
sleep 1
ended KILL
say text
say run

section 'the module goes'
trace "$calls"
say child
watch $target
echo busy >&3
sleep 0.5
ended KILL
rmmod dtrace
say text
seen | sed 's/[1-9][0-9]*/some/'
watch $target
say run
say forks
seen
say text
insmod "$(cat /run/vm/module)"
trace "$calls"
say run
ended

finish
