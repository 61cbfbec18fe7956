# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# @limit: 120
# Transfers of a device without requests (ram0) and of one with requests (loop), direct and of a
# file; the end of each has the same blocks as its start. 0x440 and the like are b_flags: 0x40 read,
# 0x100 write, 0x20 direct, 0x10 of pages.
modprobe brd rd_nr=1 rd_size=4096
modprobe loop
transfers='printf("%s %s%d,%d %s block %d bytes %d %x error %d\n", probename, args[1]->dev_name, args[1]->dev_major,
    args[1]->dev_minor, args[1]->dev_statname, args[0]->b_blkno, args[0]->b_bcount, args[0]->b_flags & 0x170,
    args[0]->b_error);'
dtrace -qn "io:::start,io:::done /args[1]->dev_statname == \"ram0\"/ { $transfers }
	io:::wait-start,io:::wait-done /pid == \$target && args[1]->dev_statname == \"ram0\"/ { printf(\"%s\n\", probename); }" \
	-c 'dd if=/dev/ram0 of=/dev/null iflag=direct bs=8k skip=3 count=1 status=none' | sort -r
truncate -s 16M /tmp/disk
disk=$(losetup -f)
losetup "$disk" /tmp/disk
dtrace -qn "io:::start,io:::done /args[1]->dev_statname == \"${disk#/dev/}\"/ { $transfers }" \
	-c "dd if=/dev/zero of=$disk oflag=direct bs=4k seek=5 count=1 status=none" | sort -r
# Writes that the device cannot do without a flush after them, each split in two, and empty flushes:
# each transfer starts once and ends once, with the same block and size.
. ./io-flushes
flushes "$disk" "$disk"
busybox mke2fs "$disk" >/dev/null
mkdir -p /tmp/mounted
mount "$disk" /tmp/mounted
dtrace -qn 'io:::start /args[2]->fi_name == "told"/ {
	starts[args[0]->b_edev, args[0]->b_blkno] = timestamp;
	@ = sum(args[0]->b_bcount);
	printf("%s %s %d\n", args[2]->fi_fs, args[2]->fi_dirname, args[2]->fi_offset);
}
io:::done /starts[args[0]->b_edev, args[0]->b_blkno]/ { printf("%s done\n", args[2]->fi_name); }
END { printa("%@d bytes\n", @); }' -c 'dd if=/dev/zero of=/tmp/mounted/told bs=8k count=1 conv=fsync status=none' | sed '/^$/d' | sort -u
umount /tmp/mounted
# A partition, whose blocks count from its own first one, in all probes.
printf '\0\0\0\0\203\0\0\0\0\10\0\0\0\20\0\0' | dd of=/tmp/disk bs=1 seek=446 conv=notrunc status=none
printf '\125\252' | dd of=/tmp/disk bs=1 seek=510 conv=notrunc status=none
losetup -d "$disk"
losetup -P "$disk" /tmp/disk
dtrace -qn "io:::start,io:::done,io:::wait-start,io:::wait-done /args[1]->dev_statname == \"${disk#/dev/}p1\"/ {
		printf(\"%s of partition: block %d bytes %d\n\", probename, args[0]->b_blkno, args[0]->b_bcount); }
	sdt:block::block_bio_queue /xlate<devinfo_t>((struct bio *)arg0).dev_statname == \"${disk#/dev/}p1\"/ {
		printf(\"queued of partition: block %d\n\", xlate<bufinfo_t>((struct bio *)arg0).b_blkno); }" \
	-c "dd if=${disk}p1 of=/dev/null iflag=direct bs=8k skip=3 count=1 status=none" | sed '/^$/d' | sort
losetup -d "$disk"
rmmod brd
