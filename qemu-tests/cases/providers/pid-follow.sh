# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# @limit: 150
# Which processes are traced: those of a pattern, several, children, and one that is waited for.
. ./traced
t() { echo "$1"; shift; dtrace -x temporal "$@" 2>&1; echo; }

t 'a pattern' -qn 'pid*:a.out:grow:entry { @ = count(); }' -c 'pid-work grow'
t 'that ends with its number' -qn 'p*d$target:libc:write:entry { @[probefunc, arg0] = count(); }' -c 'pid-work grow'
t 'that is about others' -qn 'p*:a.out:grow:entry' -c 'pid-work grow'
t 'of a process that is not' -qn 'p*d99999999:a.out:grow:entry' -c 'pid-work grow'

t 'several, of different programs' -qn 'pid*:a.out:grow:entry,pid*:a.out:main:entry,pid*:libc:dlopen:entry { @[probemod, probefunc] = count(); }
	BEGIN { first = $target; } pid$target:a.out:grow:entry /pid != first/ { wrong++; } END { printf("%d\n", wrong); }' \
	-c 'pid-work grow' -c 'pid-loader open'
pid-work wait grow >/tmp/out &
one=$!
await ready /tmp/out
dtrace -qn 'pid*:a.out:grow:entry { @[pid == $target] = count(); } BEGIN { printf("%d\n", $target == '$one'); system("kill -USR1 '$one'"); }' \
	-wp $one -c 'pid-work grow' 2>&1 | LC_ALL=C sort # either may print first
wait $one

echo 'those that somebody else makes'
dtrace -Zqn 'pid*:pid-work:grow:entry { @ = count(); } BEGIN { printf("begun\n"); } END { printa("%@d\n", @); }
	proc:::exit /execname == "pid-work"/ { exit(0); }' >/tmp/traced &
tracer=$!
await begun /tmp/traced
dtrace -qn 'pid$target:a.out:grow:entry,pid$target:a.out:fib:entry { @[probefunc] = count(); }' -c 'pid-work grow fib'
wait $tracer
cat /tmp/traced

follow='pid$target:late.so:greet:entry { @[pid == $target] = count(); }'
t 'a child goes on by itself' -Zqn "$follow" -c 'pid-loader open fork call close'
t 'or is traced' -x follow=fork -Zqn "$follow" -c 'pid-loader open fork call close'
t 'by what has come before' -x follow=fork -qn 'pid$target:a.out:call:entry,pid$target:a.out:call:0 { @[pid == $target] = count(); }' -c 'pid-loader open fork fork call'
t 'and its children' -x follow=fork -Zqn "$follow" -c 'pid-loader open generations'
t 'of a pattern' -x follow=fork -Zqn 'pid*:late:greet:entry { @[pid == $target] = count(); }' -c 'pid-loader open fork call'
t 'but no other program' -x follow=fork -Zqn "$follow" -c 'pid-loader open run call close'
t 'wrongly asked for' -x follow=exec -n BEGIN

echo 'one that is waited for'
dtrace -qn 'BEGIN { printf("%s\n", $target > 0 ? "begun" : "nobody"); } pid$target:a.out:main:entry,pid$target:a.out:grow:entry { @[probefunc] = count(); }' \
	-W pid-work >/tmp/traced 2>&1 &
tracer=$!
until grep -q dtrace /proc/$tracer/comm && [ "$(cut -d' ' -f3 /proc/$tracer/stat)" = S ] && ls -l /proc/$tracer/fd | grep -q dtrace; do sleep 0.1; done
sleep 1
pid-loader done
sh -c 'pid-work grow; true'
wait $tracer
cat /tmp/traced
echo 'several, of which the second comes first'
pid-work wait grow >/tmp/out &
one=$!
await ready /tmp/out
dtrace -qn 'BEGIN { system("kill -USR1 '$one'"); } pid*:a.out:main:entry,pid*:a.out:grow:entry { @[probemod, probefunc, pid == $target] = count(); }' \
	-w -W pid-loader -p $one -c 'pid-work fib' -W pid-work -W pid-work >/tmp/traced 2>&1 &
tracer=$!
sleep 3
pid-work grow >/dev/null & second=$!
sleep 1
pid-work sum8 >/dev/null & third=$!
sleep 1
pid-loader done >/dev/null
wait $second $third
wait $tracer
wait $one
LC_ALL=C sort /tmp/traced # either may print first
echo 'before it runs, and a script'
printf '#!/bin/sh\npid-loader done\n' >/tmp/a-script-of-a-long-name
chmod +x /tmp/a-script-of-a-long-name
dtrace -x evaltime=exec -Zqn 'pid$target:ld-linux-x86-64:_dl_debug_state:entry { seen = 1; } END { printf("%d %s\n", seen, execname); }' \
	-W a-script-of-a-long-name >/tmp/traced 2>&1 &
tracer=$!
sleep 2
/tmp/a-script-of-a-long-name
wait $tracer
cat /tmp/traced
t 'none' -qn BEGIN -W '' 
