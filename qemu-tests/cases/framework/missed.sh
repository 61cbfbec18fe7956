# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# @limit: 120
# There is no memory for the probes of a module that is being loaded: a consumer that has described
# them is notified, and gets them when the module is loaded again.
insmod "$(dirname "$(cat /run/vm/module)")/../shortage/shortage.ko" || exit 1
cat >/tmp/missed <<'end'
parameters=/sys/module/shortage/parameters
use() { ip link add missed0 type dummy; ip link del missed0; modprobe -r dummy; }
use
echo 1 >$parameters/onwards
echo 1 >$parameters/nth
bash -c "echo \$\$ >$parameters/task; exec modprobe dummy numdummies=0"
echo 0 >$parameters/task
use
modprobe dummy numdummies=0
use
end
modprobe dummy numdummies=0
dtrace -qn 'fbt:dummy:dummy_setup:entry, kinst:dummy:dummy_setup:0 { @[probeprov] = count(); } END { printa("%s %@d\n", @); }
	fbt:vmlinux:vfs_read:entry { seen++; }' -c 'bash /tmp/missed' 2>&1 |
	# If the consumer reads its status between the two, it is notified twice.
	awk '!NF { next } /^dtrace: [0-9]+ probes? / { lost += $2; sub(/^dtrace: [0-9]+ probes? /, ""); what = $0; next }
		lost { print lost, what; lost = 0 } 1
		END { if (lost) print lost, what }'
rmmod shortage
