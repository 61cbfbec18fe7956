# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# @limit: 120
# Functions that the compiler has inlined appear above the frames that contain them.
names() { sed -E 's/^ +//; s/\+0x[0-9a-f]+$//; s/^libc[^`]*`.*/libc/; /^$/d' "$@"; }
call='syscall::getppid:entry /pid == $target/'
work=$(command -v ustack-inlined-work)

echo 'unless asked for'
dtrace -qn "$call { ustack(3); }" -c "$work" | tee /tmp/plain | names

echo 'an action'
dtrace -x inlines -qn "$call { ustack(3); }" -c "$work" | tee /tmp/all | names
# The lines of real frames are the same as without inlined functions.
grep -v '\[inlined\]' /tmp/all | cmp - /tmp/plain && echo 'the same frames'

echo 'a key'
dtrace -x inlines -qn "$call { @[ustack(2)] = count(); }" -c "$work" | names
echo 'printed'
dtrace -x inlines -qn "$call { printf(\"%k\", ustack(2)); }" -c "$work" | names
echo 'a value'
dtrace -x inlines -qn "$call { self->at = ustack(2); } syscall::getppid:return /self->at.depth/ { trace(self->at); printf(\"depth %d\\n\", self->at.depth); }" \
	-c "$work" | names
for inlines in off on; do
	dtrace -x inlines=$inlines -qn "$call { printf(\"%d\\n\", ustackdepth); }" -c "$work" | grep .
done | uniq | wc -l

echo 'not by names'
for how in frames=buildid noresolve; do
	dtrace -x inlines -x $how -qn "$call { ustack(3); }" -c "$work" | grep -c "\[inlined\]"
done

echo 'stripped'
strip -o /tmp/inlined-bare "$work"
dtrace -x inlines -qn "$call { ustack(2); }" -c /tmp/inlined-bare | names | grep -c '\[inlined\]'
objcopy --only-keep-debug "$work" /tmp/inlined-bare.debug
objcopy --add-gnu-debuglink=/tmp/inlined-bare.debug /tmp/inlined-bare
dtrace -x inlines -qn "$call { ustack(2); }" -c /tmp/inlined-bare | names
echo >>/tmp/inlined-bare.debug
dtrace -x inlines -qn "$call { ustack(2); }" -c /tmp/inlined-bare | names | grep -c '\[inlined\]'

# dtrace has to find this process first: at its first call there may be no table of its file yet. So
# only the last stack counts.
echo 'in a namespace of its own'
cat >/tmp/inside <<'end'
mkdir -p /tmp/mounted
mount -t tmpfs none /tmp/mounted
cp "$(command -v ustack-inlined-work)" /tmp/mounted/gone
/tmp/mounted/gone stays &
sleep 1
rm /tmp/mounted/gone
wait
end
dtrace -x inlines -qn 'syscall::getppid:entry /execname == "gone"/ { ustack(2); }' -c 'unshare -m sh /tmp/inside' 2>&1 | names | tail -5
