# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# @limit: 90
# Names come from the file that a process has mapped, never from another with the same path: one of
# dtrace's mount namespace, or one that replaced it. They are printed while the process runs and
# after it has ended.
inside=$(command -v names-inside)
outside=$(command -v names-outside)
dir=$(mktemp -d)
p=$dir/p
traced() {
	dtrace -qn 'syscall::getppid:entry /execname == "p"/ { @u[usym(uregs[R_RIP])] = count(); @s[ustack(1)] = count(); }
	    syscall::getppid:entry /execname == "p" && !seen/ { seen = 1; printf("alive"); ustack(1); }
	    END { printa("usym %A\n", @u); printa("ended%k", @s); }' "$@" | grep -v '^$' | sed 's/+0x.*//; s/^ *//'
}
echo namespace
cp "$outside" "$p"
traced -c "unshare -m sh -c 'mount --bind $inside $p && exec $p'"
echo namespace, grabbed
unshare -m sh -c "mount --bind $inside $p && exec $p $dir/go" & pid=$!
timeout 60 await '^p$' /proc/$pid/comm
traced -w -p $pid -n "BEGIN { system(\"touch $dir/go\"); }"
wait
rm -f "$dir/go"
echo namespace, not watched
unshare -m sh -c "mount --bind $inside $p && exec $p $dir/go" &
traced -c "sh -c 'touch $dir/go; sleep 4'"
wait
echo chroot
mkdir -p "$dir/root/bin" "$dir/root$dir"
for d in usr lib lib64; do [ ! -e /$d ] || { mkdir -p "$dir/root/$d"; mount --bind /$d "$dir/root/$d"; }; done
cp "$inside" "$dir/root$p"
traced -c "chroot $dir/root $p"
for d in usr lib lib64; do umount "$dir/root/$d" 2>/dev/null; done
echo replaced
cp "$inside" "$p"
(sleep 1; cp "$outside" "$dir/new"; mv "$dir/new" "$p") &
traced -c "$p"
wait
echo deleted
cp "$inside" "$p"
(sleep 1; rm "$p") &
traced -c "$p"
wait
rm -r "$dir"
