# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: GPL-2.0-only
#
# @limit: 240
# Clauses that are each within their budget, and together would hold the CPU: their consumer is ended, whichever probe they are
# at, and its command told so. Not where it may be destructive, nor where they are few.
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
rm "$d"
