# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# @limit: 120
# @debug: quick
# Code that is in no file: code that a program has created, and the kernel's code for programs.

# made OFFSETS WORD...: runs the program, with probes at the instructions at these offsets in the
# code that it has created.
made() {
	local offsets=$1 probes='' offset
	shift
	echo "$*"
	pid-bare "${first[@]}" wait "$@" >/tmp/out &
	await at /tmp/out
	at=$(sed -n 's/^at //p' /tmp/out)
	for offset in $offsets; do probes+="${probes:+,}pid\$target:anon:-:$(printf '%x' $((0x$at + offset)))"; done
	dtrace -wqn "$probes { @[strtoll(probename, 16) - 0x$at] = count(); }
		BEGIN { system(\"kill -USR1 %d\", \$target); } END { printa(\"%d: %@d\\n\", @); }" -o /tmp/traced -p $! 2>&1 |
		sed -E "s/pid ?[0-9]+/pid N/g; s/$at/AT/g; s/^(dtrace: invalid probe specifier ).*/\\1.../; s/^.*END .*(offset|failed)/\\1/; s/[0-9a-f]{12} outside/N outside/"
	kill -USR1 $! 2>/dev/null
	wait
	grep -v '^at ' /tmp/out
	[ -e /tmp/traced ] && grep . /tmp/traced
	rm -f /tmp/out /tmp/traced
}
first=()

echo 'without'
pid-bare run child move run other run replace clock
made '0 4 5 8 12 17 22 23' run
made '8 12' run child run
made '8 12' run move run
made '8 12' run other run
made '8 12' run replace
# The code of the first tracing is remembered for as long as any traced program runs.
echo 'other code at one address'
pid-bare wait run other wait run >/tmp/out &
await at /tmp/out
at=$(sed -n 's/^at //p' /tmp/out)
one="pid\$target:anon:-:$(printf '%x' $((0x$at + 8)))"
dtrace -wqn "BEGIN { system(\"kill -USR1 %d\", \$target); } $one /++n == 100/ { exit(0); }" -p $! 2>&1 | grep .
until [ "$(grep -c '^at ' /tmp/out)" = 2 ]; do sleep 0.1; done
dtrace -qn "$one { @ = count(); } BEGIN { exit(0); }" -p $! 2>&1 | sed -E 's/pid[0-9]+/pidN/g; s/-:[0-9a-f]+ /-:AT /; /./!d'
kill -USR1 $!
wait
grep -v '^at ' /tmp/out
echo 'where it cannot be'
made '99999999999999' run
first=(open)
made '0' run

echo 'the kernel'"'"'s'
dtrace -qn 'pid$target:vdso:clock_gettime:entry { @[probefunc, probename] = count(); @a[arg0] = count(); } pid$target:vdso:clock_gettime:return { @[probefunc, probename] = count(); }
	END { printa("%s %s %@d\n", @); printa("of clock %d: %@d\n", @a); }' -c 'pid-bare clock' 2>&1
dtrace -qn 'pid$target:vdso:clock_gettime: { @ = count(); @i[probename] = count(); }' -o /tmp/traced -c 'pid-bare clock' 2>&1
awk 'NF == 1 { print ($1 > 1000 ? "many" : $1) }' /tmp/traced
dtrace -ln 'pid$target:vdso:nothing:entry' -c 'pid-bare' 2>&1
# A pattern means files.
dtrace -ln 'pid$target:v*:clock_gettime:entry' -c 'pid-bare' 2>&1 | sed 's/pid[0-9][0-9]*/pidN/'
