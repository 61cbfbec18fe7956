# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# @limit: 180
# Who may trace what: root without its capabilities nothing, a member his own processes, a user who
# may monitor the system everything except changing it.
. ./member
try() { "$@" sh -c "exec 3<>/dev/dtrace" 2>&1 | grep -o "[A-Z][a-z]* .*ed$"; }
try setpriv --bounding-set -sys_admin,-perfmon --inh-caps -sys_admin,-perfmon
chmod 666 /dev/dtrace
try as 65534
rmmod dtrace && insmod "$(cat /run/vm/module)" group=77
try as 77
chmod 666 /dev/dtrace
try as 65534

echo member
cp "$(command -v overload)" /tmp/overload
overload 50000 >/tmp/others &
as 77 dtrace -qn "$calls" -c "/tmp/overload 100" 2>&1 | grep overload
wait
# Not processes with another identity, including their group, nor programs that their user may not
# read. (A set-group program that takes its group for all its group IDs, and executes another, is
# like one that was started that way: its memory may be read by members of that group.) A user who
# may monitor everything sees that they run.
cp -a /tmp/overload /tmp/setuid && chmod 4755 /tmp/setuid
cp -a /tmp/overload /tmp/setgid && chgrp 88 /tmp/setgid && chmod 2755 /tmp/setgid
cp -a /tmp/overload /tmp/secret && chmod 711 /tmp/secret
for program in group inside capable; do cp -a /tmp/overload /tmp/$program; done
cp "$(command -v setpriv)" /tmp/group-88 && chgrp 88 /tmp/group-88 && chmod 2755 /tmp/group-88
cat >/tmp/all <<'end'
for program in overload setuid setgid secret; do /tmp/$program 100; done >/dev/null
/tmp/group-88 --regid 88 --keep-groups /tmp/group 100 >/dev/null
end
setpriv --reuid 65534 --regid 77 --clear-groups --ambient-caps +perfmon --inh-caps +perfmon \
	dtrace -qn "$calls" -c "setpriv --ambient-caps -all --inh-caps -all sh /tmp/all" | grep . | sort
echo its own
as 77 dtrace -qn "$calls" -c "sh /tmp/all" | grep . | sort
# Nor a process with a capability that the member lacks.
beside as 77 --inh-caps +net_raw --ambient-caps +net_raw /tmp/capable 100
as 77 dtrace -qn "$calls" -c 'sh /tmp/both' | grep .
wait && rm /tmp/traced /tmp/passed
beside as 77 --inh-caps +net_raw --ambient-caps +net_raw /tmp/capable 100
as 77 --inh-caps +net_raw --ambient-caps +net_raw dtrace -qn "$calls" -c 'sh /tmp/both' | grep . | sort
wait && rm /tmp/traced /tmp/passed
rm /tmp/overload /tmp/set[ug]id /tmp/secret /tmp/group* /tmp/inside /tmp/capable /tmp/all /tmp/both /tmp/others
as 77 dtrace -qn 'BEGIN { trace(curthread); } ERROR { exit(0); }' 2>&1 | grep -o 'invalid kernel access'
as 77 dtrace -qn 'BEGIN { stack(); } ERROR { exit(0); }' 2>&1 | grep -o 'invalid kernel access'
as 77 dtrace -qn 'BEGIN { printf("%s", execname); exit(0); }' | grep .
for probe in fbt::vfs_read:entry sched:::on-cpu; do
	as 77 dtrace -qn "$probe" 2>&1 | grep -o 'the probes need rights over the kernel'
done
as 77 dtrace -wqn 'BEGIN { exit(0); }' 2>&1 | grep -o 'no privilege for destructive actions'
as 77 dtrace -x cpu=0 -qn 'BEGIN { exit(0); }' 2>&1 | grep -o 'no privilege to choose a CPU'

echo monitor
monitor() { as 65534 --inh-caps +perfmon,+bpf --ambient-caps +perfmon,+bpf "$@"; }
watch() { as 65534 --inh-caps +perfmon --ambient-caps +perfmon "$@"; }
monitor dtrace -qn 'BEGIN { printf("%d", curthread->pid == tid); } fbt::vfs_read:entry { exit(0); }' | grep .
monitor dtrace -wqn 'BEGIN { exit(0); }' 2>&1 | grep -o 'no privilege for destructive actions'

# A user who may watch everything gets a message about what he lacks to read memory.
echo watch
watch dtrace -qn 'sched:::on-cpu { printf("%d", stackdepth > 0 && (long)curthread != 0); exit(0); }' | grep .
watch dtrace -qn 'BEGIN { trace(curthread->pid); } ERROR { exit(0); }' 2>&1 | grep -o 'invalid kernel access.*)'
watch dtrace -qn 'syscall::read:entry { tracemem(copyin(arg1, 1), 1); } ERROR { exit(0); }' -c 'cat /proc/uptime' 2>&1 |
	grep -o 'invalid user access.*)' | uniq
watch dtrace -qn 'pid$target:::entry { }' -c 'cat /proc/uptime' 2>&1 | grep -o 'probes in processes need.*'
rmmod dtrace && insmod "$(cat /run/vm/module)"
