# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# @limit: 240
# @debug: quick
# Clauses that load memory of the program which is not present when it makes the system call: the
# page is brought in, and the call continues unchanged.
masked() { sed -E 's/ID [0-9]+: /ID N: /; s/0x[0-9a-f]{8,}/ADDRESS/'; }
# Prints the output of the program, the complaints of dtrace, and the output of the D script, which
# otherwise come in any order.
t() {
	echo "$1"
	rm -f /tmp/told
	dtrace -x temporal -x switchrate=1hour -qn "$2" -o /tmp/told -c "syscall-pages $3" 2>/tmp/complaints
	cat /tmp/complaints /tmp/told | masked
}

t 'a name' 'syscall::access:entry /pid == $target/ { @[copyinstr(arg0), arg1] = count(); } syscall::access:return /pid == $target/ { @r[arg0, errno] = count(); }' access
t 'entry and return see the same' 'syscall::access:entry /pid == $target/ { self->name = copyinstr(arg0); self->began = timestamp; @in = count(); }
	syscall::access:return /self->name != NULL/ { @[self->name, timestamp > self->began] = count(); self->name = 0; }' access
t 'of 32 bits' 'syscall:ia32:open:entry /pid == $target/ { printf("%s, ", copyinstr(arg0)); } syscall:ia32:open:return /pid == $target/ { printf("%d, ", errno); }' low
t 'memory' 'syscall::write:entry /pid == $target && arg0 == -1/ { this->p = (long *)copyin(arg1, arg2); printf("%d, ", *this->p); }' write
t 'where there is none' 'syscall::access:entry /pid == $target/ { n = 1; printf("%s, ", copyinstr(arg0)); } ERROR { printf("%d %d at %x, ", n, arg4, arg5); }' none
t 'nobody answers' 'syscall::write:entry /pid == $target && arg0 == -1/ { trace(copyin(arg1, 8)); } ERROR { printf("fault %d, ", arg4); }' unanswered
t 'the stack of a call that waited is that of one that did not' 'int n, same, depth; uintptr_t from;
	syscall::access:entry /pid == $target/ { this->name = copyinstr(arg0); same += ++n > 1 && depth == stackdepth && from == caller && depth > 1 && from != 0;
		depth = stackdepth; from = caller; printf("%s, ", this->name); } END { printf("%d same\n", same); }' twice
# Here ftrace continues with the trampoline of the BPF program, so no page is brought in.
echo 'beside a BPF program'
rm -f /tmp/told
BPF_FUNCTION=__x64_sys_access bpf-events dtrace -x temporal -x switchrate=1hour -qn 'long n, loaded, failed; syscall::access:entry /pid == $target/ { n++; this->name = copyinstr(arg0); loaded++; }
	ERROR { failed++; } END { printf("%d calls, %d told\n", n, loaded + failed); }' -o /tmp/told -c 'syscall-pages access' >/dev/null 2>&1
cat /tmp/told
t 'beside another tracer' 'syscall::access:entry,fbt::__x64_sys_access:entry /pid == $target/ { @[probeprov] = count(); } syscall::access:entry /pid == $target/ { @s[copyinstr(arg0)] = count(); }
	fbt::__x64_sys_access:return /pid == $target/ { @r = count(); }' access
