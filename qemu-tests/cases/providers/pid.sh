# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# @limit: 120
# @debug: quick
# Functions and instructions of a process: the arguments of its probes, how often they fire, and
# that it computes the same as without.
. ./printed

t 'arguments, results' -qn 'pid$target:a.out:sum8:entry { printf("%d %d %d %d %d %d %d %d\n", arg0, arg1, arg2, arg3, arg4, arg5, arg6, arg7); }
pid$target:a.out:sum8:return { printf("%d %s:%s:%s:%s\n", arg1, probeprov == strjoin("pid", lltostr($target)) ? "pid" : "", probemod, probefunc, probename); }' -c 'pid-work sum'

t 'recursion' -qn 'pid$target:a.out:fib:entry { self->depth++; @deepest = max(self->depth); @in = count(); }
pid$target:a.out:fib:return { self->depth--; @out = count(); @results[arg1] = count(); }
END { printa("deepest %@d\n", @deepest); printa("in %@d\n", @in); printa("out %@d\n", @out); printa("%d: %@d\n", @results); }' -c 'pid-work fib'

t 'ways out' -qn 'pid$target:a.out:leave:return { printf("%x to %A\n", arg0, usym(uregs[R_RIP])); }
pid$target:a.out:leave:entry { printf("leave(%d) by %A, %A\n", arg0, usym(ucaller), usym(uregs[R_RIP])); }
pid$target:a.out:twice:entry { printf("twice(%d) by %A\n", arg0, usym(ucaller)); }' -c 'pid-work leave'

t 'every instruction' -n 'pid$target:a.out:fib:,pid$target:a.out:leave: { @[probefunc] = count(); }' -c 'pid-work fib leave fib' | sed -E 's/probes?$/probes/; s/matched [0-9]+/matched/'

t 'what is executed elsewhere' -n 'pid$target:a.out:odd: { @ = count(); }' -c 'pid-work odd'
t 'by its name' -qn 'pid$target:a.out:odd:4' -c 'pid-work odd'
t 'by its name' -qn 'pid$target:a.out:odd:c' -c 'pid-work odd'

t 'a library' -qn 'pid$target:libc:write:entry { @[arg0] = sum(arg2); }' -c 'pid-work grow'
t 'threads' -qn 'pid$target:a.out:grow:entry { @ = count(); @t[tid] = count(); } pid$target:a.out:grow:return { @r = sum(arg1); }
END { printa("%@d calls\n", @); printa("%@d\n", @r); }' -c 'pid-work threads' | grep -v '^ *[0-9]* *1000$'
t 'not of a child' -qn 'pid$target:a.out:grow:entry { @[pid == $target] = count(); }' -c 'pid-work fork grow'
t 'but where it has the memory' -qn 'pid$target:a.out:grow:entry { @[pid == $target] = count(); }' -c 'pid-work vfork'
t 'nor of another program' -qn 'pid$target:a.out:grow:entry { @ = count(); }' -c 'pid-work grow exec'

echo 'while it runs'
pid-work wait grow text wait grow text wait text >/tmp/out &
await ready /tmp/out
while_waiting() {
	dtrace -wp "$1" -qn 'BEGIN { system("kill -USR1 %d", $target); }
	syscall::rt_sigtimedwait:entry /pid == $target/ { exit(0); }
	pid$target:a.out:grow:'"$2"' { @ = count(); }'
}
while_waiting $! entry
while_waiting $! 0
kill -USR1 $!
wait $!
cat /tmp/out

echo 'two at once'
pid-work wait grow >/tmp/one &
one=$!
pid-work wait grow >/tmp/two &
two=$!
await ready /tmp/one; await ready /tmp/two
dtrace -p $one -qn 'pid$target:a.out:grow:entry { @ = count(); @other[pid != $target] = count(); } BEGIN { printf("ready\n"); }' >/tmp/first &
first=$!
dtrace -p $two -qn 'pid$target:a.out:grow:entry { @ = count(); @other[pid != $target] = count(); } BEGIN { printf("ready\n"); }' >/tmp/second &
second=$!
await ready /tmp/first; await ready /tmp/second
kill -USR1 $one $two
wait $one $two $first $second
cat /tmp/first /tmp/second
echo 'no more' $(dtrace -l -P 'pid*' 2>/dev/null | wc -l)
