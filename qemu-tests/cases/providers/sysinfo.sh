# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# @limit: 90
# The statistics grow by the amounts that each command is known to cause.
count() { dtrace -qn "$1:::$2 /${4:-pid} == \$target/ { @ = sum(arg0); } END { printa(\"%@d\\n\", @); }" -c "$3" | sed '/^$/d'; }
copy='dd if=/dev/zero of=/dev/null bs=1000 count=50 status=none'
[ "$(count sysinfo sysread "$copy")" -ge 50 ] && echo sysread
[ "$(count sysinfo syswrite "$copy")" -ge 50 ] && echo syswrite
[ "$(count sysinfo readch "$copy")" -ge 50000 ] && echo readch
count sysinfo writech "$copy"
# The calls of 32-bit programs count as well: five of each kind, 1000 bytes each.
dtrace -qn 'syscall::getppid:return /pid == $target/ { calls++; }
	sysinfo:::sysread, sysinfo:::syswrite, sysinfo:::readch, sysinfo:::writech /pid == $target && calls == 1/ { @[probename] = sum(arg0); }
	END { printa("32 bits: %s %@d\n", @); }' -c ia32-transfers | sed '/^$/d' | sort
[ "$(count sysinfo namei 'cat /etc/passwd /etc/passwd /etc/passwd' | tail -1)" -ge 3 ] && echo namei
[ "$(count sysinfo sysexec 'sh -c "exec /bin/true"')" -ge 1 ] && echo sysexec
count sysinfo sysfork 'proc-events'
count sysinfo nthreads 'proc-events'
dtrace -qn 'sysinfo:::sysvfork,sysinfo:::msg,sysinfo:::sema /pid == $target/ { @[probename] = sum(arg0); } END { printa("%s %@d\n", @); }' \
	-c sysinfo-events | sed '/^$/d' | sort
[ "$(count sysinfo pswitch 'sched-events')" -ge 50 ] && echo pswitch
[ "$(count sysinfo inv_swtch 'sched-events')" -gt 0 ] && echo inv_swtch
[ "$(count sysinfo idlethread 'sched-events')" -gt 0 ] && echo idlethread
[ "$(count sysinfo rw_wrfails 'lock-events')" -gt 0 ] && echo rw_wrfails
dtrace -qn 'sysinfo:::modload,sysinfo:::modunload { printf("%s %d\n", probename, arg0); }' \
	-c 'sh -c "modprobe dummy numdummies=0; modprobe -r dummy"' | sed '/^$/d' | sort
dtrace -qn 'sysinfo:::xcalls { @ = sum(arg0); } END { printa("xcalls %@d\n", @); }' \
	-c 'sh -c "echo 0 >/sys/devices/system/cpu/cpu1/online; echo 1 >/sys/devices/system/cpu/cpu1/online"' |
	sed -E '/^$/d; s/ [1-9][0-9]*$/ some/'
fresh='import mmap; m = mmap.mmap(-1, 409600, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
for n in range(0, 409600, 4096): m[n] = 1'
echo "$fresh" >/tmp/fresh.py
[ "$(count vminfo zfod 'python3 /tmp/fresh.py')" -ge 100 ] && echo zfod
# Also counts every page of a huge page.
cat >/tmp/huge.py <<'P'
import mmap
m = mmap.mmap(-1, 8 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
m.madvise(mmap.MADV_HUGEPAGE)
for n in range(0, 8 << 20, 4096): m[n] = 1
P
[ "$(count vminfo zfod 'python3 /tmp/huge.py')" -ge 2048 ] && echo 'zfod of huge pages'
[ "$(count vminfo as_fault 'python3 /tmp/fresh.py')" -ge 100 ] && echo as_fault
# A fault counts once, however often it is retried: to read data, the kernel waits without the locks
# and then retries.
echo 1 >/proc/sys/vm/drop_caches
dtrace -qn 'fbt::handle_mm_fault:return /pid == $target && arg1 & 0x400/ { tried++; }
	fbt::handle_mm_fault:return /pid == $target && !(arg1 & 0x400)/ { ended++; }
	vminfo:::as_fault /pid == $target/ { faults += arg0; }
	END { printf("faults that were tried again: %d, as_fault is of ends: %d\n", tried > 0, faults == ended); }' -c 'python3 -c pass' | sed '/^$/d'
[ "$(count vminfo prot_fault 'proc-events')" -gt 0 ] && echo prot_fault
# A fault on the kernel's own memory: a kprobe event that reads an unmapped address. Copying to a
# program is not such a fault.
t=/sys/kernel/tracing
mountpoint -q $t || mount -t tracefs none $t
echo 'p:case/reads vfs_read nothing=@0xffffffff00000000:u64' >$t/kprobe_events
echo 1 >$t/events/case/reads/enable
[ "$(count vminfo kernel_asflt 'dd if=/proc/version of=/dev/null status=none')" -gt 0 ] && echo kernel_asflt
echo 0 >$t/events/case/reads/enable
echo >$t/kprobe_events
copies=$(count vminfo kernel_asflt 'dd if=/dev/zero of=/dev/null bs=1M count=1 status=none')
echo "kernel_asflt of copies: ${copies:-none}"
