# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# @limit: 180
# Probes that a program registers with the helper device or has as DOF in its file: what they pass,
# who enables them, and to which program they belong.
. ./traced
passed='work$target:::passed { printf("%s %d %d %d, %x %s:%s:%s\n", copyinstr(arg0), args[1], args[2], args[3], arg2, probemod, probefunc, probename); }
	work$target:::float { printf("%.2f\n", args[0]); } work$target:::tail { printf("tail %d\n", args[0]); }'
# Probes that a program registers at run time have no types when dtrace compiles the script.
later=$(sed 's/args\[\([0-9]\)\]/arg\1/g; s/%.2f/%d/' <<<"$passed")

echo 'nobody listens'
usdt-dof fire register fire
usdt-dof-file
echo 'devices' $(stat -c '%a %n' /dev/dtracehelper)
t 'in the file' -qn "$passed"' work$target:::said-it { }' -c usdt-dof-file
t 'registered' -Zqn "$later"' work$target:::said-it { }' -x holdtime=1sec -c 'usdt-dof register fire remove fire'
t 'by address' -Zqn 'work$target:::said-it, work$target:::tail { }' -x holdtime=1sec -c 'usdt-dof third fire remove fire'
t 'of a name of its own' -Zqn 'work$target:another::passed { printf("%s\n", probemod); }' -x holdtime=1sec -c 'usdt-dof named fire'
t 'as on illumos' -Zqn 'work$target:::tail { printf("%d\n", arg0); }' -x holdtime=1sec -c 'usdt-dof classic fire'
t 'without an object' -Zqn 'work$target:::tail { printf("%d\n", arg0); }' -x holdtime=1sec -c 'usdt-dof plain fire'
t 'one after the other' -Zqn 'work$target:::tail { @n = count(); }' -x holdtime=1sec -c 'usdt-dof register fire register number fire remove fire register number fire'

while_traced 'processes that begin later' 'work*:::tail { @[execname] = sum(arg0); }' 'usdt-dof register fire; usdt-dof register fire; usdt-dof-file'
while_traced 'a child has them, another program has not' 'work*:::passed { @[probeprov == strjoin("work", lltostr(pid)) ? "own" : "another"] = count(); }' \
	'usdt-dof register fork fire exec fire fork'

# The output depends on how many of the processes dtrace holds in time.
echo 'many at a time'
rm -f /tmp/traced
dtrace -Zqn 'work*:::tail, work*:::passed, work*:::said-it { @n[probename] = count(); } BEGIN { printf("begun\n"); } tick-60s { exit(1); }' >/tmp/traced 2>&1 &
tracer=$!
await begun /tmp/traced
for n in 1 2 3 4 5 6; do
	usdt-dof register fork third fire remove fork exec register plain fork fire >/tmp/many$n &
	many="$many $!"
done
wait $many
kill $tracer
wait $tracer
grep -h 'tail 9' /tmp/many* | wc -l
grep -h 'fork 0' /tmp/many* | wc -l

echo 'processes that run'
usdt-dof register wait fire remove wait >/tmp/one &
one=$!
await ready /tmp/one
dtrace -l -n 'work*:::' | awk -v one=$one '{ sub(one, "ONE", $2); print $2, $3, $4, $5 }' | sort
dtrace -lvn "work$one:::passed" | grep -A10 'Argument Attributes'
rm -f /tmp/traced
dtrace -qn "work$one:::tail"' { trace(args[0]); } BEGIN { printf("begun\n"); } tick-60s { exit(1); } proc:::exit /pid == '$one'/ { exit(0); }' >/tmp/traced 2>&1 &
await begun /tmp/traced
kill -USR1 $one
until [ $(grep -c ready /tmp/one) = 2 ]; do sleep 0.1; done
echo 'removed' $(dtrace -l -P 'work*' 2>/dev/null | wc -l)
kill -USR1 $one
wait
cat /tmp/traced /tmp/one
echo
echo 'no more' $(dtrace -l -P 'work*' 2>/dev/null | wc -l)

echo 'hostile'
usdt-dof hostile fire
usdt-dof remove look number remove remove
