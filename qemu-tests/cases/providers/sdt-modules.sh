# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# @limit: 120
# The tracepoints of a module have probes with typed arguments while the module is loaded. The
# module can also be unloaded while they are enabled.
found() { provider-check count 0 'sdt:ext4::' 2>&1 >/dev/null | awk '{ print ($1 > 0) ? "probes" : "none" }'; }
modprobe -r ext4
found
modprobe loop
modprobe ext4
found
truncate -s 8M /tmp/disk-sdt
busybox mke2fs -F /tmp/disk-sdt >/dev/null
mkdir -p /tmp/mounted-sdt
mount -o loop /tmp/disk-sdt /tmp/mounted-sdt
dtrace -qn 'sdt:ext4::ext4_request_inode /pid == $target/ {
	printf("%s %d %o\n", stringof(args[0]->i_sb->s_type->name), args[0]->i_ino, args[1] & 0170000);
}' -c 'mkdir /tmp/mounted-sdt/folder'
umount /tmp/mounted-sdt
provider-check run 'sdt:ext4::ext4_request_inode' -- modprobe -r ext4 2>/dev/null
found
for n in 1 2 3; do
	modprobe ext4
	found
	modprobe -r ext4
done
found
