# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: GPL-2.0-only
#
# @limit: 240
# Clauses that are each within their budget, and together would hold the CPU: their consumer is ended, whichever probe they are
# at or on their way to, and its command told so. Not where it may be destructive, nor where they are few.
d=$(mktemp)
# Each compares nearly three million bytes.
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
# Each fault passes by all clauses of ERROR.
for clauses in 50 1000; do
	echo "# $clauses faults, $clauses clauses at ERROR"
	seq -f 'BEGIN { trace(*(int *)0); } ERROR { @ = count(); } /* %.0f */' "$clauses" >"$d"
	echo 'BEGIN { exit(0); }' >>"$d"
	dtrace -x statusrate=100ms -qs "$d" 2>&1 | sed '/^$/d; /^dtrace: error on enabled/d' | uniq
	echo "status ${PIPESTATUS[0]}"
done
rm "$d"
