# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# @limit: 120
# Tools in the style of the classic toolkit, about disks and connections.
. ./run
modprobe loop
truncate -s 4M /tmp/toolkit/disk
disk=$(losetup -f)
losetup "$disk" /tmp/toolkit/disk
reads="dd if=$disk of=/dev/null iflag=direct bs=4k count=4 status=none"
writes="dd if=/dev/zero of=$disk oflag=direct bs=8k count=2 seek=3 status=none"
echo '-- diskwatch'
run diskwatch "${disk#/dev/}" "$reads"
run diskwatch -D -o -s -t "${disk#/dev/}" "$writes" | sed -E 's/^([0-9]+ +){4}/T T T T /'
echo '-- disksizes.d'
run disksizes.d -c "$reads" | sed '/^$/d'
echo '-- diskpattern'
run diskpattern "${disk#/dev/}" "$reads"
run diskpattern "${disk#/dev/}" true
losetup -d "$disk"
echo '-- talks.d'
run talks.d -c 'known-work talk' | sed '/^$/d'
rm -rf /tmp/toolkit
