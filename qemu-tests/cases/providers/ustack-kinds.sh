# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# @limit: 120
# Stacks of programs of every kind, whose functions have no frame pointers: statically linked, with
# musl, 32-bit, in C++ and Rust, in other namespaces, deleted, and in memory.

# names: prints the functions of the program, and `other` for those of libraries between them.
names() { sed -E 's/^ +//; /^$/d; s/\+0x[0-9a-f]+$//; s/^(libc|ld|ld-musl)[^`]*`.*/other/; s/^[^`]*`//' | uniq | head -40 | paste -sd' '; }
of() { dtrace -qn 'syscall::getppid:entry /pid == $target/ { ustack(); }' -c "$1" 2>&1 | names; }

for kind in static staticpie; do
	for chain in deep sorts aligns signal; do echo "$kind, $chain: $(of "ustack-$kind $chain")"; done
done
# musl has no unwind tables, and its functions have no frame pointers: a stack ends at the first
# frame of musl.
for chain in deep aligns; do
	echo "musl, $chain: $(dtrace -qn 'pid$target:a.out:last:entry { ustack(); }' -c "ustack-musl $chain" 2>&1 | names)"
done
echo "i386, by a system call: $(of ustack-i386)"
echo "i386, at the ends of functions"
for end in entry return; do
	dtrace -qn 'pid$target::last:'$end' { ustack(); }' -c ustack-i386 | names
done
echo "exceptions: $(of ustack-throw)"
# The number of frames of the standard library varies, so only these functions are selected.
echo "Rust: $(dtrace -qn 'syscall::clock_nanosleep:entry /pid == $target/ { ustack(); exit(0); }' -c 'shop-rust 1' 2>&1 | names |
	grep -oE 'std::thread::sleep|shop_rust::[a-z:]*|\bmain\b|_start$' | uniq | paste -sd' ')"

# last_of WHAT COMMAND: prints the last stack of a program of which dtrace knows nothing when it
# starts.
last_of() {
	dtrace -x switchrate=100hz -qn 'syscall::getppid:entry /execname == "inside" || execname == "memfd:in-memory"/ { ustack(); }' -c "$2" >/tmp/stacks 2>&1
	echo "$1: $(awk -v RS= 'END { print }' /tmp/stacks | names)"
}
# Enough work to give dtrace the time to make the tables.
often=$(printf 'deep 300 %.0s' {1..12})
mkdir /tmp/container
cat >/tmp/contained <<end
mount -t tmpfs none /tmp/container
cp "$(command -v ustack-work)" /tmp/container/inside
/tmp/container/inside $often deep
end
last_of 'in other namespaces' 'unshare -mpf --mount-proc sh /tmp/contained'
cp "$(command -v ustack-work)" /tmp/container/inside
cat >/tmp/deleted <<end
/tmp/container/inside 1000 $often deep &
until grep -qx inside /proc/\$!/comm; do :; done
rm /tmp/container/inside
wait
end
last_of 'deleted' 'sh /tmp/deleted'
cp "$(command -v ustack-work)" /tmp/inside
last_of 'in memory' "pid-memfd /tmp/inside $often deep"
rm -r /tmp/container /tmp/contained /tmp/deleted /tmp/inside /tmp/stacks
