# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# @limit: 120
# Paths in the form of /proc: across mounts, of files that are removed or in no directory, below
# another root.
{
show='BEGIN { printf("%s\n", d_path(&curthread->fs->pwd)); }'
file='BEGIN { printf("%s\n", d_path(&getf(3)->f_path)); exit(0); }'
work=/tmp/paths
mkdir -p $work/mounted
mount -t tmpfs none $work/mounted
mkdir -p $work/mounted/one/two
echo text >$work/mounted/one/file
for dir in / /proc/sys/kernel $work/mounted $work/mounted/one/two; do
	(cd $dir && dtrace -qn "$show BEGIN { exit(0); }")
done
echo files
dtrace -qn "$file" 3<$work/mounted/one/file
exec 3<$work/mounted/one/file
rm $work/mounted/one/file
dtrace -qn "$file"
test "$(dtrace -qn "$file")" = "$(readlink /proc/$BASHPID/fd/3)" && echo "as in /proc"
exec 3< <(sleep 100)
test "$(dtrace -qn "$file")" = "$(readlink /proc/$BASHPID/fd/3)" && echo "a pipe as in /proc"
kill $!
exec 3<&-
dtrace -qn 'BEGIN { printf("%d %d\n", getf(1000) == NULL, getf(-1) == NULL); exit(0); }'
echo root
mkdir -p $work/root
mount --bind / $work/root
for dir in dev proc sys; do mount --bind /$dir $work/root/$dir; done
chroot $work/root sh -c "cd /usr/share && dtrace -qn '$show BEGIN { exit(0); }'"
umount $work/root/dev $work/root/proc $work/root/sys $work/root
umount $work/mounted
rm -r $work
echo devices
dtrace -qn 'BEGIN { printf("%s\n", ddi_pathname((void *)&`platform_bus, 0)); exit(0); }'
echo arguments
cat >/tmp/arguments.d <<'SCRIPT'
BEGIN { printf("%s\n", execargs); exit(0); }
SCRIPT
dtrace -x argref -qs /tmp/arguments.d one 'two three'
rm /tmp/arguments.d
echo registers
dtrace -qn 'BEGIN { printf("%x %x %x %x %d\n", uregs[R_CS], uregs[R_SS], uregs[R_DS], uregs[R_ES],
	uregs[R_SP] > 0x7f0000000000); exit(0); }'
echo faults
dtrace -qn 'BEGIN { trace(d_path((struct path *)0x18)); } ERROR { exit(0); }' 2>&1 | grep -o 'invalid address (0x18)'
dtrace -qn 'BEGIN { trace(msgsize(curthread)); } ERROR { exit(0); }' 2>&1 | grep -o 'illegal operation'
} | grep .
