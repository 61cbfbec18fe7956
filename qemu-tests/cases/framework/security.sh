# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# @limit: 120
# If a security module refuses perf events or BPF to a user with the capabilities for them, DTrace
# hides the same things from him. Here a live patch of the kernel's hooks acts as the security
# module; it allows everything to root.
insmod "$(dirname "$(cat /run/vm/module)")/../refuse/refuse.ko"
of=/sys/module/refuse/parameters
until [ "$(cat /sys/kernel/livepatch/refuse/transition)" = 0 ]; do sleep 0.1; done
chmod 666 /dev/dtrace
able() { setpriv --reuid 65533 --regid 88 --clear-groups --inh-caps +perfmon,+bpf --ambient-caps +perfmon,+bpf "$@"; }
# sees COMMAND...: prints what a user, given by the command, may see of the machine.
sees() {
	local probe memory others
	probe=$("$@" dtrace -qn 'fbt::vfs_statx:entry { exit(0); } BEGIN { printf("kernel"); exit(0); }' 2>/tmp/refused) || probe=-
	memory=$("$@" dtrace -qn 'BEGIN /curthread->pid >= 0/ { printf("memory"); } BEGIN { exit(0); }' 2>/dev/null)
	others=$("$@" dtrace -qn 'syscall:::entry /pid != $pid/ { exit(0); } BEGIN { printf("others"); exit(0); }' 2>/dev/null) || others=-
	echo "$probe ${memory:--} $others"
}
for refused in 0 1 2 4 8; do
	echo $refused >$of/perf
	echo "perf $refused: $(sees able), root $(sees env)"
done
echo 0 >$of/perf
echo 1 >$of/bpf
echo "bpf: $(sees able), root $(sees env)"
echo 1 >$of/perf
sees able >/dev/null
cat /tmp/refused
echo 0 >/sys/kernel/livepatch/refuse/enabled
while [ -e /sys/kernel/livepatch/refuse ]; do sleep 0.1; done
rmmod refuse
echo "nothing: $(sees able)"
