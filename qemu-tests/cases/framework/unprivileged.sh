# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: GPL-2.0-only
#
# @limit: 120
# Who may trace, and what: root that has lost its rights over the system nothing, a group its own processes, whoever may
# monitor the system everything but to change it.
try() { "$@" sh -c "exec 3<>/dev/dtrace" 2>&1 | grep -o "[A-Z][a-z]* .*ed$"; }
as() { setpriv --reuid 65534 --regid "$1" --clear-groups "${@:2}"; }
try setpriv --bounding-set -sys_admin,-perfmon --inh-caps -sys_admin,-perfmon
chmod 666 /dev/dtrace
try as 65534
rmmod dtrace && insmod "$(cat /run/vm/module)" group=77
try as 77
chmod 666 /dev/dtrace
try as 65534

echo member
calls='syscall::sched_get_priority_max:entry { @[uid, execname] = count(); } END { printa("%d %s %@d\n", @); }'
cp "$(command -v overload)" /tmp/overload
overload 50000 >/tmp/others &
as 77 dtrace -qn "$calls" -c "/tmp/overload 100" 2>&1 | grep overload
wait
rm /tmp/overload /tmp/others
as 77 dtrace -qn 'BEGIN { trace(curthread); } ERROR { exit(0); }' 2>&1 | grep -o 'invalid kernel access'
as 77 dtrace -qn 'BEGIN { stack(); } ERROR { exit(0); }' 2>&1 | grep -o 'invalid kernel access'
as 77 dtrace -qn 'BEGIN { printf("%s", execname); exit(0); }' | grep .
for probe in fbt::vfs_read:entry profile-97; do
	as 77 dtrace -qn "$probe" 2>&1 | grep -o 'the probes need rights over the kernel'
done
as 77 dtrace -wqn 'BEGIN { exit(0); }' 2>&1 | grep -o 'no privilege for destructive actions'
as 77 dtrace -x cpu=0 -qn 'BEGIN { exit(0); }' 2>&1 | grep -o 'no privilege to choose a CPU'

echo monitor
monitor() { as 65534 --inh-caps +perfmon --ambient-caps +perfmon "$@"; }
monitor dtrace -qn 'BEGIN { printf("%d", curthread->pid == tid); } fbt::vfs_read:entry { exit(0); }' | grep .
monitor dtrace -wqn 'BEGIN { exit(0); }' 2>&1 | grep -o 'no privilege for destructive actions'
rmmod dtrace && insmod "$(cat /run/vm/module)"
