# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# @limit: 240
# The kernel stack at probes of every provider: it begins with the code that caused the event,
# `caller` is the same (for a sample: the caller of the interrupted function), it contains no frame
# of DTrace, and it reaches the kernel's entry point, also through exceptions and interrupts.
sample=$(dirname "$(cat /run/vm/module)")/../provider/dtrace_sample.ko
modprobe brd rd_nr=1 rd_size=4096
insmod "$sample"
# In the debug kernel the call of a tracepoint is a separate function, whose frame precedes the
# others, and ip_local_out() is inlined.
between= inlined=
case $(uname -r) in *-debug) between='vmlinux`__do_trace_' inlined='s/`__ip_queue_xmit to /`ip_local_out to /' ;; esac
# at PROBE PREDICATE COMMAND [CLAUSE]: prints the first and the last frame, the exceptions and
# interrupts between them, whether the first frame is `caller`, and how many frames belong to
# DTrace.
at() {
	rm -f /tmp/stack
	dtrace -qn "$4 $1 /($2) && !seen++/ { printf(\"caller %a\n\", caller); stack(); }" -o /tmp/stack -c "$3" >/dev/null 2>&1
	sed 's/+0x[0-9a-f]*$//' /tmp/stack | awk -v probe="$1" -v between="$between" '/^caller/ { caller = $2; next }
		between && !first && index($1, between) == 1 && $1 == caller { inside = 1; next }
		/`/ { if (!first) first = $1; last = $1; ours += /dtrace`/; if (/`asm_/) by = by " by " $1 }
		END { printf "%s: %s to %s%s, caller %s, ours %d\n", probe, first, last, by, inside || caller == first ? "too" : caller, ours }' |
		sed "$inlined"
}
mine='pid == $target'
at fbt::vfs_read:entry "$mine" 'cat /proc/version'
at fbt::vfs_read:return "$mine" 'cat /proc/version'
at syscall::read:entry "$mine" 'cat /proc/version'
at syscall::read:return "$mine" 'cat /proc/version'
at sdt:sched::sched_process_exit "$mine" true
at proc:::exit "$mine" true
asleep='syscall::clock_nanosleep:entry /pid == $target/ { self->asleep = 1; }'
at sched:::off-cpu 'self->asleep' 'sleep 0.1' "$asleep"
at sched:::sleep 'self->asleep' 'sleep 0.1' "$asleep"
at cpc:::context_switches-all-1 'self->asleep' 'sleep 0.1' "$asleep"
at io:::start "$mine" 'dd if=/dev/ram0 of=/dev/null iflag=direct bs=8k count=1'
at lockstat:::adaptive-acquire "$mine" 'cat /proc/version'
at vminfo:::as_fault "$mine" page-faults
at sysinfo:::sysread "$mine" 'cat /proc/version'
at ip:::send "$mine" 'net-events udp 4'
at udp:::send "$mine" 'net-events udp 4'
at tcp:::connect-request "$mine" 'net-events tcp 4'
at tcp:::state-change "$mine" 'net-events tcp 4'
at sample:::write-start "$mine" 'dd if=/proc/version of=/proc/dtrace_sample count=1'
# A system call writes to memory that is not present yet; the clock interrupts an idle CPU.
at fbt::handle_mm_fault:entry "self->in" 'dd if=/dev/zero of=/dev/null bs=256k count=1' \
	"fbt::vfs_read:entry /$mine/ { self->in = 1; } fbt::vfs_read:return /self->in/ { self->in = 0; }"
at sched:::tick 'curthread->pid == 0' 'sleep 1'
rmmod dtrace_sample brd
# A function that ends in a jump to another one leaves its return address to it. `caller` in the
# second function is the same whether the return of the first one is hooked or not.
for also in '' ', fbt::__x64_sys_read:return'; do
	dtrace -qn "fbt::ksys_read:entry$also /pid == \$target && probename == \"entry\"/ { printf(\"%a\", caller); stack(1); }" \
		-c 'cat /etc/passwd' | sed '/:/d; s/^ *//; /^$/d' >"/tmp/callers$also"
	sort -u "/tmp/callers$also" | wc -l
done
sort -u /tmp/callers* | wc -l
