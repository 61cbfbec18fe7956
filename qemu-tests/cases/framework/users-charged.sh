# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: GPL-2.0-only
#
# @limit: 120
# A user's program gets a page of its own for each page of text with a breakpoint, and its group of processes may have no more: whoever takes memory
# for it is made to wait, two seconds for a quarter of a MiB. Nobody is while he holds what everybody needs.
. ./member
rmmod dtrace && insmod "$(cat /run/vm/module)" group=77
chmod 666 /dev/dtrace
cp "$(command -v users-charged)" /tmp/work
group=/sys/fs/cgroup/charged
echo +memory >/sys/fs/cgroup/cgroup.subtree_control
mkdir $group
mkfifo /tmp/calls /tmp/lines
inside() { echo "$BASHPID" >$group/cgroup.procs; ulimit -l unlimited; own "$@"; }
(inside /tmp/work </tmp/calls) >/tmp/said & of=$!
exec 4>/tmp/calls
said() { timeout 60 sh -c "until grep -q . $1; do sleep 0.1; done" || echo nothing in $1; }
said /tmp/said
(inside device-check charged $of $(cat /tmp/said) </tmp/lines) >/tmp/told &
exec 3>/tmp/lines
said /tmp/told
cat >/tmp/charge <<'end'
echo 0 >/sys/fs/cgroup/charged/memory.high
echo >/tmp/lines
timeout 60 sh -c 'until grep -q enabled /tmp/told; do sleep 0.1; done' || echo it does not end
echo max >/sys/fs/cgroup/charged/memory.high
end
dtrace -qn 'fbt::__mem_cgroup_handle_over_high:entry { @[stack(60)] = count(); }' -o /tmp/stacks -c 'sh /tmp/charge'
timeout 60 sh -c 'until grep -q traces /tmp/told; do sleep 0.1; done'
echo >&4
exec 4>&-
wait $of
echo >&3
exec 3>&-
wait
sed 's/pid[0-9]*:[^ ]*/it/' /tmp/told
tail -n 1 /tmp/said
# The stacks of those who were made to wait while they set breakpoints.
grep -E 'dtrace_(own|carrier|pen|known|memory|slot)' /tmp/stacks
rmdir $group
rm -f /tmp/work /tmp/calls /tmp/lines /tmp/said /tmp/told /tmp/charge /tmp/stacks
rmmod dtrace && insmod "$(cat /run/vm/module)"
