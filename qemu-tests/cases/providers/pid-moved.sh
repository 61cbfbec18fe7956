# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# @limit: 300
# Instructions that are executed out of line while they have a probe, mixed with others: programs
# compute the same as without probes.

# probed PROBES WORD: runs the program with probes, and then prints how many of a function's probes
# have fired how often.
probed() {
	rm -f /tmp/traced
	dtrace -qn "$1 { @[probefunc, probename] = count(); }" -o /tmp/traced -c "${3:-pid-moved} $2" 2>/tmp/told
	cat /tmp/told
	awk 'NF == 3 { fired[$1 " " $3]++ } END { for (k in fired) print " ", k, "times:", fired[k], "probes" }' /tmp/traced | LC_ALL=C sort
}
# says PROBES WORD: prints the program's output, and dtrace's.
says() {
	dtrace -qn "$1 { @ = count(); }" -o /tmp/traced -c "pid-moved $2" 2>/tmp/told
	cat /tmp/told
}

echo 'without'
pid-moved forms avx processor signals faults fresh areas unmaps
for word in own steps stops threads forks rseq; do pid-moved $word; done
(pid-moved dies; true) 2>/dev/null
pid-moved32

echo 'forms'
functions='pid$target:a.out:locked:,pid$target:a.out:strings:,pid$target:a.out:flags:,pid$target:a.out:table:'
probed "$functions"',pid$target:a.out:numbers:,pid$target:a.out:vectors:' forms
probed 'pid$target:a.out:wide:' avx
probed 'pid$target:a.out:itself:' processor
echo '32 bits'
probed 'pid$target:a.out:locked:,pid$target:a.out:numbers:,pid$target:a.out:vectors:,pid$target:a.out:copy:' '' pid-moved32

echo 'signals'
probed 'pid$target:a.out:copy:,pid$target:a.out:locked:,pid$target:a.out:strings:' signals
probed 'pid$target:a.out:increase:' threads

echo 'faults'
says 'pid$target:a.out:divide:,pid$target:a.out:add_to:,pid$target:a.out:load:,pid$target:a.out:load_aligned:' faults
says 'pid$target:a.out:add_to:,pid$target:a.out:load:' fresh

echo 'tracers'
says 'pid$target:a.out:walk:' own
says 'pid$target:a.out:walk:' steps
says 'pid$target:a.out:copy:,pid$target:a.out:numbers:' stops
says 'pid$target:a.out:add_to:' dies | sed -E 's/pid [0-9]+/pid N/'

echo 'children'
probed 'pid$target:a.out:numbers:,pid$target:a.out:increase:' forks

echo 'restartable sequences'
says 'pid$target:a.out:restartable:' rseq

echo 'slots'
says 'pid$target:a.out:numbers:' areas
probed 'pid$target:a.out:numbers:,pid$target:a.out:strings:' unmaps
# If there is no room for slots, uprobes carry the probes on instructions that they can execute.
pid-moved crowd forms avx >/tmp/out &
target=$!
await crowded /tmp/out
dtrace -qn 'pid$target:a.out:numbers:,pid$target:a.out:strings:,pid$target:a.out:wide: { @[probefunc] = count(); } BEGIN { printf("begun\n"); }' \
	-p $target >/tmp/traced 2>/tmp/told &
tracer=$!
await -p $tracer begun /tmp/traced
kill -USR1 $target
wait $target $tracer
cat /tmp/out
sed 's/: [0-9][0-9]* /: N /; s/pid[0-9]*:.*:[0-9a-f]* /pidN:… /' /tmp/told
awk 'NF == 2 { print $1, ($2 > 1000 ? "often" : "seldom") }' /tmp/traced | sort
dtrace -x aggsortkey -qn 'pid$target:a.out:numbers:,pid$target:a.out:wide: { } profile-4999 /pid == $target && arg1/ { @[umod(arg1)] = count(); @u[umod(uregs[R_RIP])] = count(); @s[ustack(1)] = count(); }' \
	-c 'pid-moved forms avx forms avx forms avx' 2>&1 | grep -v '^$' | sed -E 's/^ +//; s/[`+ ].*//' | sort | uniq | grep -v '^lib\|^ld\|^[0-9]*$'
sleep 1000 &
dtrace -wqn 'pid$target:libc:printf: { } BEGIN { system("grep -c \"/dtrace-slots (deleted)\" /proc/%d/maps", $target); } syscall::exit_group:entry /execname == "grep"/ { exit(0); }' -p $!
for n in {1..100}; do grep -q '/dtrace-slots (deleted)' /proc/$!/maps || break; sleep 0.1; done
grep -c '/dtrace-slots (deleted)' /proc/$!/maps
for n in {1..300}; do grep -q '^get_signal ' /sys/kernel/tracing/enabled_functions || break; sleep 0.1; done
grep -c '^get_signal ' /sys/kernel/tracing/enabled_functions
kill $!
