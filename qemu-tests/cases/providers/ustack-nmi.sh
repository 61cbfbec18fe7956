# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# @limit: 60
# The stack of a program that an NMI interrupts.
. ./ustack-names
insmod "$(dirname "$(cat /run/vm/module)")/../nmi/nmi.ko" || exit 1
# Sends from one CPU and then from the other, because the NMIs go to all CPUs except the sender's.
for cpu in 0 1; do echo "taskset -c $cpu sh -c 'echo 200 >/sys/module/nmi/parameters/send'"; done >/tmp/send
dtrace -wqn 'BEGIN { system("sh /tmp/send"); } sdt:nmi::nmi_handler /pid == $target/ { @[ustack()] = count(); @n = count(); }
	END { trunc(@, 1); printa(@); printa("%@d\n", @n); }' -c 'ustack-work spins' >/tmp/stacks 2>&1
names </tmp/stacks
awk '/^[0-9]+$/ && $1 > 100 { print "many" }' /tmp/stacks
rmmod nmi
