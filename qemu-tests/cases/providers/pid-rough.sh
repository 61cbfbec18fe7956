# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# @limit: 180
# @slow: its storms take a minute
# Probes in processes next to the kernel's own, in processes and consumers that are killed, and
# enabled and disabled while they fire.
tracing=/sys/kernel/tracing

echo 'beside a uprobe'
echo "p:grown $(command -v pid-work):$(pid-work where)" >$tracing/uprobe_events
echo 1 >$tracing/events/uprobes/grown/enable
dtrace -qn 'pid$target:a.out:grow:entry { @ = count(); }' -c 'pid-work grow text'
awk '$2 == "grown" { print "of the uprobe", $3 }' $tracing/uprobe_profile
echo 0 >$tracing/events/uprobes/grown/enable
echo >$tracing/uprobe_events

echo 'consumers that are killed'
pid-work threads threads threads long long text >/tmp/out &
for pause in 0.05 0.1 0.2 0.3; do
	dtrace -qn 'pid$target:a.out:grow:,pid$target:libc:_*:entry { @ = count(); }' -p $! >/dev/null 2>&1 &
	sleep 1$pause
	kill -9 $! 2>/dev/null
	set -- $(jobs -p)
	wait $!
done 2>/dev/null
wait "$1" 2>/dev/null
cat /tmp/out

echo 'processes that are killed'
for n in 1 2 3; do
	pid-work wait long >/tmp/out &
	await ready /tmp/out
	dtrace -qn 'BEGIN { system("kill -USR1 %d", $target); } pid$target:a.out:grow:entry { calls++; }
	pid$target:a.out:grow:entry /calls == 500/ { raise(9); } END { printf("%d\n", calls); }' -wp $! 2>/dev/null | grep .
	wait $!
done 2>/dev/null

echo 'on and off while it runs'
pid-work wait busy text >/tmp/out &
await ready /tmp/out
kill -USR1 $!
for n in 1 2 3 4 5 6; do
	dtrace -qn 'pid$target:a.out:grow:entry { self->n = arg0; }
	pid$target:a.out:grow:return /self->n/ { arg1 == self->n + 1 ? good++ : wrong++; }
	pid$target:a.out:grow:return /good == 50/ { printf("%d, %d\n", good, wrong); exit(0); }' -p $! 2>&1 | grep .
done
kill -USR2 $!
wait $!
cat /tmp/out
