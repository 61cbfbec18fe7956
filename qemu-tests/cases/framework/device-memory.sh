# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# A load from a device that the kernel has mapped is a fault; one from memory that is mapped next to
# it is not. The kernel also maps firmware tables, which are in memory. What is above it belongs to
# devices: the timers, the bus.
sysctl -qw kernel.kptr_restrict=1 # shows addresses to root
first() { grep -E "$1" /proc/vmallocinfo | head -1 | cut -d' ' -f1 | cut -d- -f"${2:-1}"; }
load() {
	dtrace -qn "BEGIN { trace($1); printf(\" it is loaded\"); exit(0); } ERROR { exit(0); }" 2>&1 |
		sed -E '/^dtrace: invalid/!s/.*(invalid address|loaded).*/\1/' | grep .
}
device=$(first ' phys=0x00000000[ef].* ioremap')
memory=$(first ' pages=[1-9].* vmalloc')
load "*(int *)$device"
load "*(char *)($device + 8)"
load "stringof((char *)$device)"
load "*(int *)$memory"
# The kernel's driver turns a disk's buffer into memory that other devices can reach, in the direct
# map.
modprobe nvme
disk=/sys/class/nvme/nvme0/device
timeout 30 sh -c "until [ -e $disk/p2pmem/size ]; do sleep 0.2; done" || echo 'no buffer'
buffer=$(while read -r first last _; do
	[ $((last - first + 1)) -eq "$(cat $disk/p2pmem/size)" ] && echo "$first" && break
done <$disk/resource)
begins=$(awk '$3 == "page_offset_base" { print "0x" $1 }' /proc/kallsyms)
load "*(int *)(*(long *)$begins + $buffer)"
load "stringof((char *)(*(long *)$begins + $buffer))"
load "*(int *)(*(long *)$begins + 0x100000)"
rmmod nvme
