# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# @limit: 180
# USDT probes of programs that start, and of libraries that are loaded, after tracing began: no
# firing is missed.
. ./traced

while_traced 'programs that begin later' 'work*:::said-it { @[execname] = sum(arg0); @n = count(); }' \
	'usdt-work tell; usdt-work tell tell'
while_traced 'their children, and what they execute' 'work*:::said-it { @[probeprov == strjoin("work", lltostr(pid)) ? "own" : "another" ] = count(); }' \
	'usdt-work fork; usdt-work tell exec tell'
while_traced 'children of what they execute' 'work*:::said-it { @ = sum(arg0); @n = count(); }' 'usdt-work tell exec fork'
while_traced 'several at once' 'work*:::said-it { @[probename] = count(); }' \
	'for i in 1 2 3; do usdt-work tell >/tmp/out.$i & list="$list $!"; done; wait $list; cat /tmp/out.* | sort | uniq -c'
while_traced 'a library' 'late*:::greeted { printf("%s %d\n", probemod, arg0); }' 'pid-loader open call close open call'
while_traced 'of others nothing' 'worker*:::said-it { @ = count(); } late*:late.so:nonesuch: { @ = count(); }' 'usdt-work tell; pid-loader open call'
options='-x holdtime=0'
while_traced 'without being held' 'work*:::said-it { @ = count(); }' 'usdt-work wait tell >/tmp/out & work=$!; sleep 3; kill -USR1 $work; wait $work; cat /tmp/out'
options='-x holdtime=1sec'

t 'a library of one process' -x holdtime=1sec -Zqn 'late$target:::greeted { printf("%d ", arg0); }' -c 'pid-loader open call close'
t 'twice' -x holdtime=1sec -Zqn 'late$target:::greeted { printf("%d ", arg0); }' -c 'pid-loader open call close open call'
# A process that strace may stop in a system call is not held; dtrace reports that firings may be
# missing.
while_traced 'beside strace' 'late*:::greeted { @ = sum(arg0); }' 'strace -f -o /tmp/strace pid-loader open call' |
	awk '/went on|107|7/ { told = 1 } NR == 1 { print } END { print told ? "traced or told" : "lost" }'

echo 'who does not answer holds nobody up'
dtrace -Zqn 'nonesuch*:::x { } BEGIN { printf("begun\n"); }' >/tmp/traced 2>&1 &
tracer=$!
await begun /tmp/traced
kill -STOP $tracer
# The stopped consumer delays the first program by 200 ms in total, not once per file, and does not
# delay the other programs.
cp "$(command -v usdt-work)" /tmp/usdt-other
before=$(date +%s)
for i in 1 2 3 4 5 6 7 8 9 10; do cp /tmp/usdt-other /tmp/usdt-$i; /tmp/usdt-$i tell; done | uniq -c
[ $(($(date +%s) - before)) -lt 60 ] && echo soon
kill -KILL $tracer
wait $tracer 2>/dev/null
rm /tmp/usdt-*

echo 'what the consumer itself starts'
dtrace -wZqn 'nonesuch*:::x { } BEGIN { system("cp $(command -v usdt-work) /tmp/usdt-new; /tmp/usdt-new tell"); exit(0); }' 2>&1
rm /tmp/usdt-new
dtrace -x holdtime=1sec -wZqn 'work*:::said-it { @ = sum(arg0); } BEGIN { system("usdt-work tell tell"); } proc:::exit /execname == "usdt-work"/ { exit(0); }' 2>&1
t 'a time that is none' -x holdtime=2sec -n 'work*:::'
echo 'no more' $(dtrace -l -P 'work*' 2>/dev/null | wc -l)
