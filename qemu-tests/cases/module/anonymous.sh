# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# @limit: 300
# What dtrace -A saves is traced from the loading of the module on, without a consumer, until a
# consumer claims it.
module=$(cat /run/vm/module)
dof=/tmp/anon.dof
boots=0

# boot [PARAMETER...]: loads the module again, with the file, and prints the kernel's messages.
boot() {
	rmmod dtrace
	boots=$((boots + 1))
	echo "anonymous: boot $boots" >/dev/kmsg
	insmod "$module" anon_file=$dof "$@" || exit 1
	# Includes messages about probes for which this kernel lacks the means.
	dmesg | sed -n "/anonymous: boot $boots\$/,\$s,.*dtrace: /,/,p"
}

# As at a boot: the messages are those of DTrace.
dtrace -A -o $dof -n 'BEGIN { printf("begin %s", "x"); }' \
	-n 'syscall::chdir:entry /execname == "bash"/ { @dirs[copyinstr(arg0)] = count(); trace(-1); }' 2>&1
stat -c '%a' $dof
boot
cd /proc; cd /tmp; cd /proc
# Another consumer does not disturb it, and gets nothing of it.
dtrace -qn 'BEGIN { trace("beside"); exit(0); }'
dtrace -n 'BEGIN' -x grabanon 2>&1 | tail -1
echo "-- claimed"
dtrace -ae 2>&1 | sed 's/^ *[0-9][0-9]* *[0-9][0-9]* */CPU ID /'
echo "-- claimed again"
dtrace -a 2>&1

echo "-- goes on"
dtrace -qA -o $dof -n 'syscall::chdir:entry /execname == "bash"/ { printf("to %s\n", copyinstr(arg0)); }'
boot
cd /sys
dtrace -a >/tmp/out 2>&1 &
pid=$!
await /sys /tmp/out
cd /tmp
await /tmp /tmp/out
kill $pid
wait $pid
grep . /tmp/out

echo "-- policies"
for policy in ring fill switch; do
	dtrace -qA -o $dof -b 1k -x bufpolicy=$policy -x cpu=0 -n 'syscall::chdir:entry { trace(arg0); }'
	boot
	taskset 1 bash -c 'for i in $(seq 200); do cd /proc; done'
	dtrace -ae >/tmp/out 2>/tmp/err
	[ -s /tmp/out ] && echo "$policy: records"
	sed 's/[0-9][0-9]* drops/N drops/' /tmp/err
done

echo "-- suppressed"
boot anon=0
dtrace -ae 2>&1
echo "-- broken"
head -c 200 $dof >$dof.cut
mv $dof.cut $dof
boot
echo nonsense, and quite a lot of it, more than the header of an image has room for >$dof
boot
dtrace -ae 2>&1
dtrace -A -o $dof 2>&1
echo "-- cleared"
boot
dtrace -ae 2>&1
# The file is optional: without the parameter the kernel logs nothing about it.
rmmod dtrace
echo "anonymous: none named" >/dev/kmsg
insmod "$module"
dmesg | sed -n '/anonymous: none named$/,$s/.*\(anonymous enabling\)/\1/p'
