# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# @limit: 240
# Clauses that are each within their budget, but together would hold the CPU: their consumer is
# killed, at whichever probe they are, and its command is notified. Not if it may be destructive,
# nor if there are few clauses. Consumers that are each within their budget can hold the CPU
# together as well: the first ones run, the rest is killed.
d=$(mktemp)
# heavy PROBE N [FLAG]: N clauses; each compares nearly three million bytes.
heavy() {
	echo "# $2 clauses at $1${3:+, $3}"
	{
		printf 'inline string hay = "%030000d"; inline string needle = "%090d1";\n' 0 0
		seq -f "$1 { @ = sum(strstr(hay, needle) == NULL); } /* %.0f */" "$2"
		printf 'BEGIN, tick-1s { exit(0); }\n'
	} >"$d"
	dtrace ${3:+"$3"} -x strsize=32k -x statusrate=100ms -qs "$d" 2>&1 | sed '/^$/d'
	echo "status ${PIPESTATUS[0]}"
}
for probe in BEGIN END; do
	heavy $probe 30
	heavy $probe 10
	heavy $probe 30 -w
done
# Each fault fires all clauses of ERROR.
for clauses in 50 1000; do
	echo "# $clauses faults, $clauses clauses at ERROR"
	seq -f 'BEGIN { trace(*(int *)0); } ERROR { @ = count(); } /* %.0f */' "$clauses" >"$d"
	echo 'BEGIN { exit(0); }' >>"$d"
	dtrace -x statusrate=100ms -qs "$d" 2>&1 | sed '/^$/d; /^dtrace: error on enabled/d' | uniq
	echo "status ${PIPESTATUS[0]}"
done
echo '# ten consumers of ten clauses'
{
	printf 'inline string hay = "%030000d"; inline string needle = "%090d1";\n' 0 0
	for _ in 1 2 3 4 5 6 7 8 9 10; do
		echo 'syscall::sched_get_priority_max:entry /execname == "overload"/ { @ = sum(strstr(hay, needle) == NULL); }'
	done
	echo 'BEGIN { printf("begun\n"); }'
} >"$d"
tracers=()
for n in 0 1 2 3 4 5 6 7 8 9; do
	dtrace -x strsize=32k -x statusrate=100ms -qs "$d" -o /tmp/heavy.$n 2>/tmp/heavy.err.$n & tracers+=($!)
	timeout 60 await begun /tmp/heavy.$n
done
overload 1 >/dev/null
timeout 30 await unresponsiveness /tmp/heavy.err.*
sleep 1
kill "${tracers[@]}" 2>/dev/null
wait
ended=$(grep -ls unresponsiveness /tmp/heavy.err.* | wc -l)
whole=$(grep -lsE '^ +[12]0$' /tmp/heavy.? | wc -l)
[ "$ended" -ge 4 ] && [ "$whole" -ge 2 ] && echo 'some are ended, and some are served' || echo "$ended ended, $whole served"
rm "$d" /tmp/heavy.*
