# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# @limit: 60
# Compares the members of lwpsinfo_t and psinfo_t of a process that receives a signal with /proc.
cat >/tmp/members.d <<'D'
proc:::signal-send, proc:::signal-discard
/args[1]->pr_pid == $1/
{
	this->task = (struct task_struct *)args[0]->pr_addr;
	printf("flag=%#x syscall=%d stype=%d size=%d rssize=%d cpu=%d pri=%d oldpri=%d wchan=%d position=%d\n", args[0]->pr_flag,
	    args[0]->pr_syscall, args[0]->pr_stype, args[1]->pr_size, args[1]->pr_rssize, args[0]->pr_cpu,
	    args[0]->pr_pri, args[0]->pr_oldpri, args[0]->pr_wchan,
	    args[0]->pr_stype == SOBJ_MUTEX ? (uintptr_t)&this->task->files->fdt->fd[0]->f_pos_lock : 0);
	exit(0);
}
D
# Waits until the process is blocked in one of the given system calls.
blocked() {
	process=$1
	shift
	await "^($(IFS=\|; echo "$*")) " /proc/$process/syscall
}
# Sets a shell variable for each member of the process. dtrace runs on CPU 0 and leaves CPU 1 to the
# examined processes.
look() {
	unset flag syscall stype size rssize cpu pri oldpri wchan position
	eval "$(taskset -c 0 dtrace -qs /tmp/members.d -c "sh -c 'kill -WINCH $1'" "$1")"
}
same() { [ "$2" = "$3" ] && echo "$1" || echo "$1: $2, not $3"; }
# wait also returns when the process stops.
end() { kill -9 $1; while wait $1; [ -d /proc/$1 ]; do sleep 0.1; done; } 2>/dev/null

echo one who sleeps
taskset -c 1 nice -n 5 sleep 1000 &
blocked $! 230
look $!
set -- $! $(cat /proc/$!/statm)
same size $size $(($2 * 4))
same rssize $rssize $(($3 * 4))
same syscall $syscall $(cut -d' ' -f1 /proc/$1/syscall)
same pri $pri $(($(cut -d' ' -f18 /proc/$1/stat) + 100))
same oldpri $oldpri $pri
same cpu $cpu $(sed -n 's/^se.avg.util_avg *: *//p' /proc/$1/sched)
echo "flag $flag, type $stype, lock $wchan"
end $1

echo one who computes
taskset -c 1 sh -c 'while :; do :; done' &
until [ "$(sed -n 's/^se.avg.util_avg *: *//p' /proc/$!/sched)" -gt 700 ]; do sleep 0.1; done
look $!
echo "busy $((cpu > 512 && cpu <= 1024)), syscall $syscall"
end $!

echo one who waits for a mutex
exec 3</proc/kmsg
cat <&3 >/dev/null &
first=$!
cat <&3 >/dev/null &
second=$!
exec 3<&-
until waiter=$(grep -l '^State:.*D' /proc/$first/status /proc/$second/status); do sleep 0.1; done
waiter=${waiter#/proc/}
look ${waiter%/status}
same lock $wchan $position
echo "type $stype, syscall $syscall"
kill -9 $first $second
wait 2>/dev/null

for operation in 0 6; do
	echo "one who waits for a futex, operation $operation"
	perl -e '$| = 1; $word = pack("L", $ARGV[0] && getppid); print unpack("Q", pack("p", $word)), "\n";
		syscall(202, $word, $ARGV[0] + 0, 0, 0)' $operation >/tmp/futex &
	blocked $! 202
	look $!
	[ $operation = 6 ] || same lock $wchan $(cat /tmp/futex)
	echo "type $stype, syscall $syscall, lock $((wchan != 0))"
	end $!
done

echo a parent of vfork
mkfifo /tmp/fifo
python3 -c 'import os, signal
os.posix_spawn("/bin/true", ["true"], {}, file_actions=[(os.POSIX_SPAWN_OPEN, 5, "/tmp/fifo", os.O_RDONLY, 0)])
signal.pause()' &
blocked $! 56 58 435
look $!
echo "flag $flag"
: >/tmp/fifo
blocked $! 34
look $!
echo "flag $flag, later"
end $!

echo one who is traced
perl -e 'syscall(101, 0, 0, 0, 0); sleep 1000' &
blocked $! 230
look $!
echo "flag $flag"
end $!

echo a thread of the kernel
dtrace -qn 'sched:::wakeup /args[1]->pr_pid != 0 && args[0]->pr_flag & PR_ISSYS/ {
	printf("size %d, rssize %d, syscall %d, type %d\n", args[1]->pr_size, args[1]->pr_rssize, args[0]->pr_syscall, args[0]->pr_stype);
	exit(0); }'
