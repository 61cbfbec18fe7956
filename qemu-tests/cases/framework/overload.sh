# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# @limit: 400
# More events than there is room for: the numbers of recorded and of dropped events add up exactly.
each=50000
probe='syscall::sched_get_priority_max:entry /execname == "overload"/'
# The number of drops of all kinds that the consumer reports.
lost() { sed -n 's/^dtrace: \([0-9]*\) .*\(drop\|failed spec\).*/\1/p' "$1" | awk '{ n += $1 } END { print n + 0 }'; }
# check NAME: sums the numbers that are the last words in the lines of /tmp/overload.out.
check() {
	all=$((each * $(nproc)))
	recorded=$(awk '$1 != "calls" { n += $NF } END { print n + 0 }' /tmp/overload.out)
	dropped=$(lost /tmp/overload.err)
	if [ $((recorded + dropped)) -ne "$all" ]; then
		echo "$1: $recorded recorded + $dropped dropped of $all"
		sort /tmp/overload.err | uniq -c | sort -rn | head
	elif [ "$recorded" -eq 0 ] || [ "$dropped" -eq 0 ]; then
		echo "$1: $recorded recorded, $dropped dropped: nothing is shown"
	else
		echo "$1: exact"
	fi
}
trace() {
	dtrace "$@" -c "overload $each" >/tmp/overload.out 2>/tmp/overload.err || cat /tmp/overload.err
}
trace -qx bufsize=64k -n "$probe { printf(\"1\n\"); }"
check principal
# It ends when a buffer is full: later events are not recorded, but are not drops.
trace -qx bufsize=64k -x bufpolicy=fill -n "$probe { @ = count(); } $probe { printf(\"1\n\"); } END { printa(\"fired %@d\n\", @); }"
fired=$(sed -n 's/^fired //p' /tmp/overload.out)
recorded=$(grep -c '^1$' /tmp/overload.out)
dropped=$(lost /tmp/overload.err)
if [ "$recorded" -gt 0 ] && [ "$recorded" -lt "$fired" ] && [ "$dropped" -eq 0 ]; then
	echo 'fill: full'
else
	echo "fill: $recorded recorded, $dropped dropped of $fired"
fi
trace -qx aggsize=64k -n "$probe { @[arg0] = count(); } END { printa(\"%d %@d\n\", @); }"
check aggregation
# Every other variable is deleted again; one that has just been stored and is not found was dropped.
trace -qx dynvarsize=64k -n "$probe { kept[arg0] = 1; @ = sum(kept[arg0]); }
	${probe%/} && arg0 % 2/ { kept[arg0] = 0; } END { printa(\"%@d\n\", @); }"
check dynamic
trace -qx bufsize=64k -x nspec=1 -x specsize=4k -n "$probe { this->spec = speculation(); }
	${probe%/} && this->spec/ { speculate(this->spec); printf(\"1\n\"); }
	${probe%/} && this->spec/ { commit(this->spec); }"
check speculation
rm -f /tmp/overload.out /tmp/overload.err
