# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# @limit: 120
# @debug: quick
# USDT probes of a program: where their arguments are, whether the program knows that they are
# enabled, and to which process they belong.
# Prints the complaints of dtrace first, whenever they came.
t() { echo "$1"; shift; dtrace -x temporal -x switchrate=1hour "$@" 2>&1 >/tmp/out; cat /tmp/out; }

t 'registers' -qn 'work$target:::registers { printf("%d %d %x %x %d %s, %s:%s:%s\n", args[0], args[1], args[2], args[3], args[4], copyinstr(arg5), probemod, probefunc, probename); }' -c 'usdt-work ways'
t 'text by its address' -qn 'work$target:::registers { this->text = arg5; printf("%s %s", stringof(arg5), stringof(this->text)); }
pid$target:a.out:ways:entry { printf("%s ", stringof(curthread->comm)); } ERROR { printf("error"); }' -c 'usdt-work ways'
t 'memory' -qn 'work$target:usdt-work:ways:memory { printf("%d %d %d %d %d %d\n", args[0], args[1], args[2], args[3], args[4], args[5]); }' -c 'usdt-work ways'
t 'others' -qn 'work$target:::others { printf("%d %d %.2f %d\n", args[0], args[1], args[2], arg3); }' -c 'usdt-work ways'
t 'semaphore' -qn 'work$target:::said-it { @[probefunc] = sum(arg0); @n = count(); }' -c 'usdt-work tell'
t 'beside its instruction' -qn 'pid$target:a.out:tell: { @i = count(); } work$target:::said-it { @n = count(); } END { printa("%@d\n", @n); }' -c 'usdt-work tell' | grep -v '^ '
t 'nobody listens' -qn 'work$target:::memory { @n = count(); }' -c 'usdt-work tell'
t 'not of a child' -qn 'work$target:::said-it { @n = count(); }' -c 'usdt-work fork tell'
t 'none' -qn 'work$target:::nonesuch' -c 'usdt-work ways' | sed 's/work[0-9][0-9]*/workN/g'
t 'no argument' -qn 'work$target:::memory { trace(args[9]); }' -c 'usdt-work ways' | sed 's/work[0-9][0-9]*/workN/g'

# In one of the four calls the argument's address is not mapped: a clause that uses the argument
# faults in that firing.
far() {
	t "far: $1" -x switchrate=1hour -qn "work\$target:::far $2"' END { printa(@n); }
ERROR { printf("action %d: %d, %x", arg2, arg4 == DTRACEFLT_BADADDR, arg5); }' -c 'usdt-work far' | sed 's/ID [0-9]* (ID [0-9]*: work[0-9]*:/ID N (ID N: workN:/'
}
far 'not asked for' '{ @n = sum(arg1); }'
far 'a condition' '/arg0 == 7/ { @n = sum(arg1); }'
far 'recorded' '{ printf("%d %d,", arg1, arg0); @n = count(); }'
far 'in a string' '{ printf("%d,", arg1); this->a = args[0]; printf("%d,", this->a); @n = count(); }'
far 'a key' '{ @n[arg0] = count(); }'
far 'two keys' '{ @n[arg0, arg1] = count(); }'
far 'a sum' '{ @n = sum(arg0); }'
far 'of those that are there' '/arg1 != 3/ { @n = sum(arg0); }'
far 'once' '{ @n = sum(arg1 == 3 ? 100 : arg0); }'

echo 'processes that run'
usdt-work wait tell >/tmp/one &
one=$!
usdt-work wait tell >/tmp/two &
two=$!
await ready /tmp/one; await ready /tmp/two
dtrace -x holdtime=1sec -qn 'work*:::said-it { @[pid == '$one' ? "one" : pid == '$two' ? "two" : "other"] = sum(args[0]); }
BEGIN { printf("ready\n"); } tick-20s { exit(0); }
proc:::exit /pid == '$one' || pid == '$two'/ { ended++; } proc:::exit /ended == 2/ { exit(0); }' >/tmp/out 2>&1 &
await ready /tmp/out
dtrace -l -n 'work*:::' | awk -v one=$one -v two=$two '{ sub(one, "ONE", $2); sub(two, "TWO", $2); print $2, $3, $4, $5 }' | sort
kill -USR1 $one $two
wait
cat /tmp/out /tmp/one /tmp/two
echo 'no more' $(dtrace -l -P 'work*' 2>/dev/null | wc -l)

echo 'types'
dtrace -lvn 'work$target:::memory' -c 'usdt-work wait' 2>&1 | grep -A7 'Argument Types'
