# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# copyout() and copyoutstr() change memory of a process where the process may write, and nothing
# else; otherwise they fault.
cat >/tmp/says <<'end'
echo original
end
# says CODE: prints the output of a process whose text was changed by CODE before it was written,
# and the faults.
says() {
	dtrace -wqn "syscall::write:entry /pid == \$target && arg0 == 1/ { $1 }" -n 'ERROR { printf("fault %d at %x\n", arg4, arg5); }' \
		-c 'sh /tmp/says' 2>/dev/null | tr '\0' '@' | grep .
}
says 'this->new = (char *)alloca(4); bcopy("DATA", this->new, 4); copyout(this->new, arg1, 4);'
says 'copyoutstr("replaced", arg1, 8);'
says 'copyoutstr("rep", arg1, 8);'
says 'copyoutstr("replaced", arg1, 3);'
echo "-- where nothing is"
says 'copyoutstr("replaced", 0x1000, 8);'
echo "-- the kernel's"
says 'copyoutstr("replaced", (uintptr_t)&`jiffies, 8);'
echo "-- what may only be read"
says 'copyoutstr("replaced", (uintptr_t)curthread->mm->start_code, 8);'
rm -f /tmp/says
