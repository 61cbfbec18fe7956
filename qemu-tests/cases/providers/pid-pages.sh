# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# @limit: 120
# Clauses that load memory of the program which is not present yet: it is brought in, the firing
# happens once, and nothing waits for a page that is never provided.
masked() { sed -E 's/pid[0-9]+:/pidN:/; s/ID [0-9]+: /ID N: /; s/0x[0-9a-f]{8,}/ADDRESS/'; }
# Prints the program's output, dtrace's complaints, and the trace, which come in any order.
t() {
	echo "$1"
	rm -f /tmp/told
	dtrace -x temporal -x switchrate=1hour -qn "$2" -o /tmp/told -c "pid-pages $3" 2>/tmp/complaints
	cat /tmp/complaints /tmp/told | masked
}

t 'at once' 'pid$target:a.out:look:entry { printf("%s, ", copyinstr(arg0)); }' look
t 'left to uprobes' 'pid$target:a.out:odd:entry { printf("%s, ", copyinstr(arg0)); }' odd
t 'what a function gives back' 'pid$target:a.out:give:return { printf("%s, ", copyinstr(arg1)); }' give
t 'never touched' 'pid$target:a.out:look:entry { this->p = (long *)copyin(arg0, 8); printf("%d, ", *this->p); }' fresh
t 'by way of variables' 'self const char *at; pid$target:a.out:look:entry { this->at = arg0; self->at = (const char *)arg0; }
	pid$target:a.out:look:entry /this->at/ { printf("%s, ", copyinstr(this->at)); }
	pid$target:a.out:look:return /self->at/ { printf("%s at return, ", copyinstr((uintptr_t)self->at)); self->at = 0; }' look
t 'once' 'int n, before[long], after[long]; self int n;
	pid$target:a.out:look:entry { n++; @n = count(); self->n++; before[arg1]++; @[copyinstr(arg0)] = sum(arg1); after[arg1]++; }
	pid$target:a.out:look:return { @self = max(self->n); }
	END { printf("%d %d %d %d %d, ", n, before[1], before[2], after[1], after[2]); printa("%@d ", @n); printa("%@d ", @self); printa("%s %@d\n", @); }' look
t 'two pages' 'pid$target:a.out:look:entry /arg1 == 2/ { this->p = (char *)copyin(arg0 - 4000, 5000); printf("%s, ", stringof(this->p + 4000)); }' look
t 'half of it' 'pid$target:a.out:look:entry { this->p = copyin(arg0, 8 * 4096); } ERROR { printf("fault %d, ", arg4); }' look
t 'where there is none' 'pid$target:a.out:look:entry { @ = count(); printf("%s, ", copyinstr(arg0)); } ERROR { printf("%s at %x, ", probename, arg5); }' none
# One thread removes the pages that another brings in, also between rehearsal and firing, but
# seldom.
t 'four threads' 'int all, lost; dtrace:::ERROR { lost++; } pid$target:a.out:look:entry { all++; @[copyinstr(arg0)] = sum(arg1); }
	END { printf("%s, %s\n", all > 1500 ? "all" : "some", lost < 20 ? "few lost" : "many lost"); trunc(@); }' threads | grep -v 'error on'
t 'many signals' 'pid$target:a.out:look:entry { @[copyinstr(arg0), strlen(copyinstr(arg0))] = max(arg1); }' signals

t 'nobody answers' 'pid$target:a.out:look:entry { printf("%s, ", copyinstr(arg0)); }' unanswered

echo 'and nobody waits'
pid-pages for-ever &
work=$!
dtrace -qn "int told; pid\$target:a.out:look:entry { printf(\"%s\", copyinstr(arg0)); } ERROR { @ = count(); } ERROR /!told/ { told = 1; printf(\"begun\\n\"); }" -p $work >/tmp/out 2>/tmp/err &
tracer=$!
await begun /tmp/out
# Pages of files come and go meanwhile.
cat /proc/$tracer/fdinfo/* 2>/dev/null | awk '/^dtrace-slow/ { print ($3 > 0 ? "waits" : "no waits"), ($5 > 0 ? "in vain too" : "none in vain"); exit }'
# Another uprobe at the same place.
file=$(command -v pid-pages)
events=/sys/kernel/tracing/uprobe_events
echo "p:pages/look $file:0x$(nm "$file" | awk '$3 == "look" { print $1 }')" >$events && echo 1 >/sys/kernel/tracing/events/pages/look/enable && echo 'another one set'
echo 0 >/sys/kernel/tracing/events/pages/look/enable && echo >$events && echo 'and removed'
kill $work
wait $work
echo "the program ended with $?"
wait $tracer
echo "dtrace ended with $?"
