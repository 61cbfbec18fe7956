# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# @debug: never
# @limit: 90
# Two programs at the same addresses, one after the other with the same process id: dtrace cannot
# know to which one a stack belongs, so it must not print a wrong name. (The debug kernel does not
# allow a program to choose the next process id.)
cat >/tmp/work <<'end'
last=/proc/sys/kernel/ns_last_pid
pid=$(($(sh -c 'echo $$') + 100))
echo $pid >$last; setarch -R ended-work
echo $pid >$last; setarch -R sleep 4
end
for try in 1 2 3 4 5; do
	dtrace -x switchrate=3sec -qn '
		syscall::sched_get_priority_max:entry /arg0 == 77/ { first = pid; ustack(2); }
		syscall::clock_nanosleep:entry /pid == first/ { printf("again"); }
		' -c 'sh /tmp/work' >/tmp/out
	! grep -q again /tmp/out || break
done
sed -E 's/^ +//; s/\+0x[0-9a-f]+$//; s/^0x.*/a number/' /tmp/out | grep .
