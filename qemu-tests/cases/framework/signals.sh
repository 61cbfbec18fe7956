# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# @debug: quick
# A process gets all signals that one firing sends it, from several clauses and consumers; an
# invalid signal number is a fault; a kernel thread gets none.
cat >/tmp/sender <<'end'
bash -c 'trap "echo 1" USR1; trap "echo 2" USR2; trap "echo hup" HUP; umask 0123; echo goes on' &
await '^State:.T' /proc/$!/status
echo stopped
kill -CONT $!
wait $!
end
cat >/tmp/other <<'end'
dtrace -wqn 'syscall::umask:entry /arg0 == 0123/ { raise(SIGUSR2); }' -c 'bash /tmp/sender'
end
dtrace -wqn 'syscall::umask:entry /arg0 == 0123/ { stop(); raise(SIGUSR1); } syscall::umask:entry /arg0 == 0123/ { raise(SIGHUP); }' \
	-c 'sh /tmp/other' | sed '/^$/d'
dtrace -wqn 'syscall::umask:entry /arg0 == 0123/ { raise(65); } ERROR { exit(0); }' -c 'sh -c "umask 0123"' 2>&1 | grep -o 'illegal operation.*'
dtrace -wqn 'sdt:sched::sched_switch /!pid/ { stop(); printf("no fault"); exit(0); }' | grep .
