# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# @limit: 180
# Transfers of NFS, with this machine as the server. The nfs module is loaded after the consumer
# starts, unloaded while it traces, and loaded again.
{
	mkdir /tmp/exported /tmp/client
	../../guest/nfs-server
	exportfs -i -o rw,no_root_squash,insecure,fsid=1 127.0.0.1:/tmp/exported
} >/tmp/server.log 2>&1 || cat /tmp/server.log
cat >/tmp/rounds <<'end'
for round in 1 2; do
	modprobe nfs
	mount -t nfs -o vers=3,nolock,proto=tcp 127.0.0.1:/tmp/exported /tmp/client
	cd /tmp/client
	dd if=/dev/zero of=told bs=64k count=2 conv=fsync status=none
	echo 3 >/proc/sys/vm/drop_caches
	cat told >/dev/null
	dd if=/dev/zero of=told bs=4k seek=3 count=1 conv=notrunc oflag=direct status=none
	stat -c 'device %Hd:%Ld' told >/tmp/device
	exec 3<told
	rm /tmp/exported/told
	dd of=/dev/null bs=4k count=1 iflag=direct status=none <&3 2>/dev/null
	exec 3<&-
	cd /
	umount /tmp/client
	modprobe -r nfsv3 nfs
done
end
dtrace -qn 'io:::start,io:::done /args[1]->dev_statname == "nfs" && args[0]->b_flags & B_PAGEIO/ {
	@[probename, args[0]->b_flags & (B_READ | B_WRITE), args[2]->fi_name, args[2]->fi_fs, args[1]->dev_name, args[1]->dev_pathname,
	    args[0]->b_resid, args[0]->b_error] = sum(args[0]->b_bcount);
}
io:::start,io:::done /args[1]->dev_statname == "nfs" && args[0]->b_flags & B_PHYS/ {
	printf("%s flags %x bytes %d block %d offset %d left %d error %d\n", probename, args[0]->b_flags, args[0]->b_bcount,
	    args[0]->b_blkno, args[2]->fi_offset, args[0]->b_resid, args[0]->b_error);
}
io:::start /args[1]->dev_statname == "nfs"/ { printf("device %d:%d\n", args[1]->dev_major, args[1]->dev_minor); }
END { printa("%s %x %s %s %s %s left %d error %d: %@d\n", @); }' -c 'sh /tmp/rounds' >/tmp/told
sed "/^$/d; s/$(cat /tmp/device)/the device/" /tmp/told | sort -u
rpc.nfsd 0
pkill rpc.mountd
pkill rpcbind
umount /proc/fs/nfsd
