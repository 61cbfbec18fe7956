# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# @limit: 120
# A user's program gets a page of its own for each page of text with a breakpoint, while its cgroup
# may have no more memory: a task that allocates memory for it is throttled, for two seconds per
# quarter of a MiB. No task is throttled while it holds a lock that others need.
. ./member
rmmod dtrace && insmod "$(cat /run/vm/module)" group=77
chmod 666 /dev/dtrace
mkdir /tmp/charged
cp "$(command -v users-charged)" /tmp/charged/work
group=/sys/fs/cgroup/charged
echo +memory >/sys/fs/cgroup/cgroup.subtree_control
mkdir $group
mkfifo /tmp/charged/calls /tmp/charged/lines
inside() { echo "$BASHPID" >$group/cgroup.procs; ulimit -l unlimited; own "$@"; }
(inside /tmp/charged/work </tmp/charged/calls) >/tmp/charged/said & of=$!
exec 4>/tmp/charged/calls
said() { timeout 60 await . $1 || echo nothing in $1; }
said /tmp/charged/said
(inside device-check charged $of $(cat /tmp/charged/said) </tmp/charged/lines) >/tmp/charged/told &
exec 3>/tmp/charged/lines
said /tmp/charged/told
cat >/tmp/charged/charge <<'end'
echo 0 >/sys/fs/cgroup/charged/memory.high
echo >/tmp/charged/lines
timeout 60 await enabled /tmp/charged/told || echo it does not end
echo max >/sys/fs/cgroup/charged/memory.high
end
dtrace -qn 'fbt::__mem_cgroup_handle_over_high:entry { @[stack(60)] = count(); }' -o /tmp/charged/stacks -c 'sh /tmp/charged/charge'
timeout 60 await traces /tmp/charged/told
echo >&4
exec 4>&-
wait $of
echo >&3
exec 3>&-
wait
sed 's/pid[0-9]*:[^ ]*/it/' /tmp/charged/told
tail -n 1 /tmp/charged/said
# The stacks of tasks that were throttled while they set breakpoints.
grep -E 'dtrace_(own|carrier|pen|known|memory|slot)' /tmp/charged/stacks
rmdir $group
rm -r /tmp/charged
rmmod dtrace && insmod "$(cat /run/vm/module)"
