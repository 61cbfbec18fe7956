# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: GPL-2.0-only
#
# @limit: 60
# Memory that is short: of a process in a control group with 12 MB that wants 24, so that pages are looked through, written to the swap
# device and read back; and of the machine, which wants more free than there is.
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
# More than is free counts as little, less is not too little: the kernel's own page daemon is to look for it, and nobody has to wait.
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
