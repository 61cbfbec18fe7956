# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# @limit: 60
# Lack of memory. First of a process in a control group with 12 MB that needs 24 MB, so that the
# kernel scans pages, writes them to the swap device and reads them back. Then of the machine, whose
# low watermark is raised above its free memory.
modprobe brd rd_nr=1 rd_size=65536
mkswap /dev/ram0 >/dev/null
swapon /dev/ram0
group=/sys/fs/cgroup/pressed
echo +memory >/sys/fs/cgroup/cgroup.subtree_control
mkdir $group
echo 12M >$group/memory.max
dtrace -qn 'vminfo:::anonpgout, vminfo:::anonpgin, vminfo:::maj_fault, vminfo:::scan /pid == $target/ { @[probename] = sum(arg0); }
	END { printa("%s %@d\n", @); }' \
	-c "sh -c 'echo \$\$ >$group/cgroup.procs; exec memory-pressure 24'" | awk 'NF { print $1, ($2 >= 100) ? "often" : $2 }' | sort
# Sets min_free_kbytes slightly below the free memory: the low watermark is then above it, so kswapd
# starts, but no allocation has to wait.
cat >/tmp/vminfo-short.sh <<'S'
wanted=/proc/sys/vm/min_free_kbytes
# Of the zones that memory comes from, that with the most free counts; each has its part of what is wanted, by its size.
most='/^Node/ { zone = $4 } $1 == "pages" && $2 == "free" { free = $3 } $1 == "managed" && $2 > 0 {
	all += $2; if (zone != "DMA" && free / $2 > most) most = free / $2 } END { print int(most * all * 4 * 0.9) }'
runs() { awk '$1 == "pageoutrun" { print $2 }' /proc/vmstat; }
enough=$(cat $wanted)
before=$(runs)
# What is free may have become more since it was looked at.
until [ "$(runs)" -gt "$before" ]; do
	awk "$most" /proc/zoneinfo >$wanted
	memory-pressure 1
done
echo "$enough" >$wanted
S
echo 1 >/proc/sys/vm/drop_caches
dtrace -qn 'vminfo:::pgrrun { @ = sum(arg0); } END { printa("pgrrun %@d\n", @); }' -c 'bash /tmp/vminfo-short.sh' |
	sed -E '/^$/d; s/ [1-9][0-9]*$/ some/'
swapoff /dev/ram0
rmdir $group
rmmod brd
