# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# @limit: 180
# Consumers of users that come and go do not have kernel functions hooked and unhooked each time:
# unhooking takes a wait for all tasks, and loading a kernel module waits for that. The hooks on
# changes of identity, forks and mapped files exist once for all consumers, and are removed some
# time after the last one has gone.
. ./member
mountpoint -q /sys/kernel/tracing || mount -t tracefs none /sys/kernel/tracing
rmmod dtrace && insmod "$(cat /run/vm/module)" group=77
chmod 666 /dev/dtrace
mkfifo /tmp/never
# hooks FUNCTION: how many hooks the function has.
hooks() { sed -n "s/^$1 (\([0-9]*\)).*/\1/p" /sys/kernel/tracing/enabled_functions | grep . || echo 0; }
waits='fbt::synchronize_rcu_tasks_rude:entry /execname == "device-check"/ { n++; }'
member='setpriv --reuid 65534 --regid 77 --clear-groups device-check'

echo before
hooks commit_creds
echo together
(exec $member tracings 20 stay <>/tmp/never >/tmp/told) & members=$!
timeout 60 sh -c 'until [ -s /tmp/told ]; do sleep 0.1; done'; cat /tmp/told
hooks commit_creds
dtrace -qn "$waits END { printf(\"%d waits\\n\", n); }" -c "sh -c 'kill $members; tail --pid=$members -s 0.1 -f /dev/null'" | grep .
wait
echo one after another
dtrace -qn "$waits END { printf(\"%d waits\\n\", n); }" -c "$member comings 20" | grep .
echo after a while
for function in commit_creds uprobe_mmap; do
	for n in {1..600}; do [ "$(hooks $function)" = 0 ] && break; sleep 0.1; done
	hooks $function
done
# Once more; the module is unloaded while the hooks exist.
as 77 device-check comings 1
hooks commit_creds
rmmod dtrace
hooks commit_creds
insmod "$(cat /run/vm/module)"
rm -f /tmp/never /tmp/told
