# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# @limit: 300
# @slow: it runs several lives of the module under load
# The module is unloaded while thousands of probes of a process fire in its threads: the consumer is
# killed, and the module is unloaded as soon as its device is not open any more. The program
# continues, and nothing stays in its text.
module=$(cat /run/vm/module)
pid-hot >/tmp/said &
target=$!
await ready /tmp/said

# round WORD...: the life of one consumer; the words are parameters of the module.
round() {
	rmmod dtrace && insmod "$module" "$@" || exit
	dtrace -qn 'pid$target:a.out:hot*:,pid$target:a.out:twist: { @ = count(); self->n = arg0; } BEGIN { printf("begun\n"); }' -p $target >/tmp/traced 2>&1 &
	tracer=$!
	await -p $tracer begun /tmp/traced
	probes=$(dtrace -l -n 'pid*:::' | wc -l)
	[ "$probes" -gt 1900 ] || echo "only $probes probes" "$(cat /tmp/traced)"
	sleep 0.$((RANDOM % 10))
	kill -KILL $tracer
	until rmmod dtrace 2>/dev/null; do kill -0 $target || exit; done
	insmod "$module"
	kill -USR1 $target
	n=$((n + 1))
	until [ "$(grep -c 'goes on' /tmp/said)" = $n ]; do kill -0 $target || exit; sleep 0.1; done
	wait $tracer 2>/dev/null
}
n=0
for i in 1 2 3; do round; done
round own_breakpoints=N
dtrace -qn 'pid$target:a.out:twist:entry { @ = count(); } tick-1s { exit(0); } END { printa("%@d\n", @); }' -p $target >/tmp/traced
[ "$(cat /tmp/traced)" -gt 100 ] && echo 'and it can be traced'
kill -USR2 $target
wait $target
echo "ended with $?"
cat /tmp/said
rm -f /tmp/said /tmp/traced
