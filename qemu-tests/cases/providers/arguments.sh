# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# @limit: 60
# What pr_psargs shows of another process: its arguments, wherever they are in its memory, or its
# name if they cannot be read.
# start KIND [WORD...]: starts a process; $started is its ID, or that of its child.
start() {
	mkfifo /tmp/ready
	own-arguments "$@" >/tmp/ready &
	all="$all $!"
	read -r started </tmp/ready
	rm /tmp/ready
	echo "$started $*" >>/tmp/kinds
}
all=
for kind in plain "rewritten in place" none moved across absent huge without-rights secret device zombie; do
	start $kind
	[ "$kind" != huge ] || huge=$started
done
echo '2 kthreadd' >>/tmp/kinds
cut -d' ' -f1 /tmp/kinds | sed 's/^/kill -WINCH /' >/tmp/signals
dtrace -qn 'proc:::signal-send, proc:::signal-discard /args[2] == SIGWINCH/ {
	printf("%d %s: %s\n", args[1]->pr_pid, args[1]->pr_fname, args[1]->pr_psargs); }' -c 'sh /tmp/signals' | sort -k1,1 >/tmp/told
sort -k1,1 /tmp/kinds | join - /tmp/told | sort -n | sed 's/^[0-9]* //'
grep -q '^AnonHugePages: *2048' /proc/$huge/smaps || echo 'the huge page is none'

echo long ones
start plain $(seq 2000)
tr '\0' ' ' </proc/$started/cmdline | sed 's/ $//' >/tmp/cmdline
wc -c </tmp/cmdline
for strsize in 20 4096 16384; do
	dtrace -x strsize=$strsize -qn 'proc:::signal-send, proc:::signal-discard /args[2] == SIGWINCH/ { trace(args[1]->pr_psargs); }' \
		-c "sh -c 'kill -WINCH $started'" | head -c -1 >/tmp/told
	head -c $((strsize - 1)) /tmp/cmdline | cmp - /tmp/told
done

echo who is woken, under the lock of a run queue
mkfifo /tmp/fifo
cat /tmp/fifo >/dev/null &
exec 3>/tmp/fifo
sleep 0.2
dtrace -qn 'sched:::wakeup /args[1]->pr_pid == $1 && pid != $1/ { printf("%s\n", args[1]->pr_psargs); exit(0); }' -c 'sh -c "echo >&3"' $! | grep .
exec 3>&-

echo who is made, and makes none itself
echo '(sleep 0.1); :' >/tmp/makes
dtrace -qn 'proc:::create /pid == $target/ { printf("%s\n", args[0]->pr_psargs); }' -c 'sh /tmp/makes "a child"' | grep .

echo the subroutine
dtrace -qn 'BEGIN { printf("%d\n", taskargs(curthread) == execargs); exit(0); }' | grep .
dtrace -qn 'BEGIN { trace(taskargs(&`init_task)); exit(0); }' | grep .
dtrace -qn 'BEGIN { trace(taskargs(NULL)); } ERROR { exit(0); }' 2>&1 | grep -o 'invalid address.*'
kill $all
