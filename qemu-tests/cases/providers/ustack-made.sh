# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# @limit: 120
# Names of code that has none in a file: generated at run time, stripped, or with a name for a
# linker.
names() { sed -E 's/^ +//; s/\+0x[0-9a-f]+( \(guessed\))?$/\1/; s/^(made-bare`)0x[0-9a-f]{4}$/\10x…/; s/^0x[0-9a-f]+$/0x…/; s/^libc[^`]*`.*/libc/; /^$/d' "$@" | paste -sd' '; }
call='syscall::getppid:entry /pid == $target/'

echo 'written down'
for how in '' dump foreign open old; do
	echo "$how: $(dtrace -qn "$call { ustack(5); }" -c "ustack-made-work $how" 2>&1 | names)"
done
echo "late: $(dtrace -qn "$call { ustack(5); }" -c 'ustack-made-work late' 2>&1 | sed 's/(/ (/' | grep -c framed)"
dtrace -x mangled -qn "$call { @[usym(ucaller)] = count(); ustack(4); }" -c ustack-made-work | names | grep -o '\[jit\]`_ZN4stubC1Ev'
echo "told: $(dtrace -x ustackmode=told -qn "$call { ustack(5); printf(\"%d\", ucaller >> 62 || ustack(5).addrs[3] >> 62); }" -c ustack-made-work | names)"
dtrace -x ustackmode=fp -qn "$call { ustack(5); }" -c ustack-made-work | names | grep -c stub

# dtrace has to find this process first: at its first call there may be no table of its file yet. So
# only the last stack counts.
echo 'in namespaces of its own'
cat >/tmp/inside <<'end'
mount -t tmpfs none /tmp
exec ustack-made-work stays
end
dtrace -qn 'syscall::getppid:entry /execname == "ustack-made-wor"/ { ustack(5); }' -c 'unshare -pfm --mount-proc sh /tmp/inside' | grep . | tail -5 | names

# The program's /tmp is a link that leads out of its root directory, to maps with wrong names.
echo 'a link that leads out'
cat >/tmp/inside <<'end'
mkdir -p /run/outside /run/root/run/outside /run/root/usr /run/root/lib /run/root/lib64 /run/root/proc /run/root/dev
for dir in usr lib lib64 dev; do mount --rbind /$dir /run/root/$dir; done
mount -t proc none /run/root/proc
ln -s /run/outside /run/root/tmp
for n in $(seq 300); do echo '1000 7fffffffffff wrong' >/run/outside/perf-$n.map; done
cp "$(command -v ustack-made-work)" /run/root/work
exec chroot /run/root /work stays
end
dtrace -qn 'syscall::getppid:entry /execname == "work"/ { ustack(5); }' -c 'unshare -pfm sh /tmp/inside' 2>&1 | grep . | tail -5 | names
rm -rf /run/outside

echo 'python'
cat >/tmp/chain.py <<'end'
import os
def inner(): os.getppid()
def outer(): inner()
outer()
end
dtrace -qn "$call { ustack(); }" -c 'python3 -X perf /tmp/chain.py' | sed -nE 's/^ +(\[jit\]`.*)\+0x.*/\1/p; s/^ +(libc[^`]*`__libc_start_main).*/libc`__libc_start_main/p'

echo 'stripped'
strip -o /tmp/made-bare "$(command -v ustack-made-work)"
dtrace -qn "$call { ustack(5); }" -c '/tmp/made-bare dump' | names
objcopy --only-keep-debug "$(command -v ustack-made-work)" /tmp/made-bare.debug
objcopy --add-gnu-debuglink=/tmp/made-bare.debug /tmp/made-bare
dtrace -qn "$call { ustack(5); }" -c '/tmp/made-bare dump' | names

echo 'by the build'
id=$(readelf -n /tmp/made-bare | sed -n 's/.*Build ID: //p')
dtrace -x frames=buildid -qn "$call { ustack(5); }" -c '/tmp/made-bare dump' >/tmp/out
sed -E "s/$id/ID/; s/^ +[0-9a-f]{40}\+/ OTHER+/; s/0x[0-9a-f]+/0x…/; s/^ +//" /tmp/out | names
offset=$(sed -n "s/.*$id+//p" /tmp/out | head -1)
# In a position-independent program, code has the same offset in the file as in memory, so addr2line
# takes the offset.
echo "$(addr2line -fe "$(command -v ustack-made-work)" "$(printf '%x' $((offset - 1)))" | head -1)"
dtrace -x frames=buildid -x noresolve -qn "$call { ustack(1); }" -c '/tmp/made-bare dump' | sed -E 's/^ +0x[0-9a-f]+$/a number/' | grep .

echo 'the kernel'
read -r address _ name _ < <(grep -E ' [Tt] _RNv' /proc/kallsyms | head -1)
shown=$(dtrace -qn "BEGIN { sym(0x$address); exit(0); }" | sed 's/ *$//; s/^ *//' | grep .)
[[ $shown == vmlinux\`*::* && $shown != *_R* ]] && echo demangled || echo "$name is $shown"
dtrace -x mangled -qn "BEGIN { sym(0x$address); exit(0); }" | grep -Fc "vmlinux\`$name"
