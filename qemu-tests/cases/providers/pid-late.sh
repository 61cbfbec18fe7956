# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# @limit: 120
# Libraries that are loaded and unloaded while their process is traced: each call is seen, from the
# constructor on, and nothing is held up.
. ./traced
t() { echo "$1"; shift; dtrace -x temporal "$@" 2>&1; echo; }

t 'by its name' -Zqn 'pid$target:late.so:greet:entry { printf("%d ", arg0); } pid$target:late.so:greet:return { printf("(%d) ", arg1); }' \
	-c 'pid-loader open call close'
t 'by what stands before the dot, and another name' -Zqn 'pid$target:late:salute:entry { printf("%d %s ", arg0, probefunc); }' \
	-c 'pid-loader open call close'
t 'wherever it is' -Zqn 'pid$target::greet:entry,pid$target::exit:entry { printf("%s:%s ", probemod, probefunc); }' \
	-c 'pid-loader open call close'
t 'twice' -Zqn 'pid$target:late.so:greet:entry { printf("%d ", arg0); }' -c 'pid-loader open call close open call close'
t 'where it is called from' -Zqn 'pid$target:late.so:greet:entry { printf("%A ", usym(ucaller)); }' -c 'pid-loader open call' | sed 's/+0x[0-9a-f]*//g'
t 'before the linker has run' -x evaltime=exec -Zqn 'pid$target:libc:dlopen:entry { printf("dlopen "); } pid$target:late:greet:entry { printf("%d ", arg0); }' \
	-c 'pid-loader open call close'
t 'a function that it has not' -Zqn 'pid$target:late.so:great:entry' -c 'pid-loader open'

# The breakpoint in the linker is in this process alone: no uprobe is registered, unless the
# module's own breakpoints are off.
beside() {
	dtrace -qn 'fbt::uprobe_register:entry { @ = count(); } BEGIN { printf("begun\n"); } END { printa("registered %@d\n", @); }' >/tmp/registered &
	counter=$!
	await begun /tmp/registered
	t 'beside a probe at the same instruction' -Zqn 'pid$target:late.so:greet:return { printf("%d ", arg1); }
		pid$target:ld-linux-x86-64:_dl_debug_state:entry { n++; } END { printf("%s", n >= 2 ? "seen" : "not seen"); }' -c 'pid-loader open call close'
	kill $counter
	wait $counter || echo 'the counter failed'
	grep registered /tmp/registered || echo 'registered none'
}
beside
echo N >/sys/module/dtrace/parameters/own_breakpoints
beside
echo Y >/sys/module/dtrace/parameters/own_breakpoints

echo 'its probes go with it'
pid-loader wait open call wait close wait open call >/tmp/out &
target=$!
await ready /tmp/out
dtrace -x temporal -Zqn 'pid$target:late.so:greet:entry { printf("%d ", arg0); } BEGIN { printf("begun\n"); }' -x switchrate=10hz -p $target >/tmp/traced 2>&1 &
tracer=$!
await begun /tmp/traced
list() { dtrace -ln 'pid*:late.so::' 2>/dev/null | awk '{ print $3, $4, $5 }'; }
list
kill -USR1 $target
await 7 /tmp/traced
list
kill -USR1 $target
await 200 /tmp/traced
list
kill -USR1 $target
wait $target $tracer
cat /tmp/traced

echo 'beside a debugger'
strace -f -o /tmp/strace pid-loader wait open call close >/tmp/out &
strace=$!
await ready /tmp/out
target=$(pgrep -x pid-loader)
dtrace -x temporal -Zqn 'pid$target:late.so:greet:entry { printf("%d ", arg0); } BEGIN { printf("begun\n"); }' -p "$target" >/tmp/traced 2>&1 &
tracer=$!
await begun /tmp/traced
kill -USR1 "$target"
wait $strace $tracer
cat /tmp/traced
grep -c 'late.so' /tmp/strace

echo 'a consumer that does not answer'
pid-loader wait open call close done >/tmp/out &
target=$!
await ready /tmp/out
dtrace -Zqn 'pid$target:late.so:greet:entry { printf("%d ", arg0); } BEGIN { printf("begun\n"); }' -p $target >/tmp/traced 2>&1 &
tracer=$!
await begun /tmp/traced
kill -STOP $tracer
kill -USR1 $target
await done /tmp/out
kill -CONT $tracer
wait $target $tracer
cat /tmp/out /tmp/traced

echo 'one that is killed'
pid-loader wait open call close done >/tmp/out &
target=$!
await ready /tmp/out
dtrace -Zqn 'pid$target:late.so:greet:entry { } BEGIN { printf("begun\n"); }' -p $target >/tmp/traced 2>&1 &
tracer=$!
await begun /tmp/traced
kill -STOP $tracer
kill -USR1 $target
sleep 0.3
kill -KILL $tracer
wait $target $tracer 2>/dev/null
cat /tmp/out

echo 'a target that is killed'
pid-loader wait open >/tmp/out &
target=$!
await ready /tmp/out
dtrace -Zqn 'pid$target:late.so:greet:entry { } BEGIN { printf("begun\n"); }' -p $target >/tmp/traced 2>&1 &
tracer=$!
await begun /tmp/traced
kill -STOP $tracer
kill -USR1 $target
sleep 0.3
kill -KILL $target
kill -CONT $tracer
wait $target $tracer 2>/dev/null
cat /tmp/traced
rmmod dtrace && insmod "$(cat /run/vm/module)" && echo 'the module goes'
