# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# @limit: 60
# Names of processes that have ended when dtrace looks the names up; dtrace has not examined them
# before.
call='syscall::sched_get_priority_max:entry /arg0 == 77/'
names() { sed -E 's/ +/ /g; s/^ //; s/\+0x[0-9a-f]+( |$)/\1/' | grep .; }
echo 'a file that is deleted, one of another namespace, who executes another program'
cat >/tmp/work <<'end'
cp "$(command -v ended-work)" /tmp/gone
/tmp/gone
rm /tmp/gone
unshare -m sh -c 'mount -t tmpfs none /mnt && cp "$(command -v ended-work)" /mnt/inside && /mnt/inside'
ended-work sleep 5 &
sleep 1
end
dtrace -x switchrate=2sec -qn "$call { ustack(2); }" -c 'sh /tmp/work' | names
echo 'addresses alone'
dtrace -qn "$call { @a[umod(ucaller), usym(ucaller)] = count(); }" -c ended-work | names
dtrace -qn "$call { @[usym(ucaller)] = count(); }" -c 'sh -c "ended-work; true"' | names
echo 'a stack that is a value'
dtrace -qn "$call { self->s = ustack(2); } syscall::exit_group:entry /execname == \"ended-work\"/ { trace(self->s); }" -c 'sh -c "ended-work; true"' | names
echo 'many'
cat >/tmp/work <<'end'
for n in $(seq 300); do ended-work; done
end
dtrace -qn "$call { @[ustack(2)] = count(); }" -c 'sh /tmp/work' | names | sort | uniq -c
