# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: GPL-2.0-only
#
# @limit: 240
# The kernel's stack at probes of every provider: it begins with the code that did what the probe tells, `caller` is the same (a
# sample's: what called the function that it is in), no frame is ours, and it goes on to where the kernel was entered, through
# exceptions and interrupts.
sample=$(dirname "$(cat /run/vm/module)")/../provider/dtrace_sample.ko
modprobe brd rd_nr=1 rd_size=4096
insmod "$sample"
# In the debug kernel the call of a tracepoint is a function of its own, whose frame comes before the others' first, and ip_local_out()
# is inlined.
between= inlined=
case $(uname -r) in *-debug) between='vmlinux`__do_trace_' inlined='s/`__ip_queue_xmit to /`ip_local_out to /' ;; esac
# at PROBE PREDICATE COMMAND [CLAUSE]: the first frame and the last, by what exceptions and interrupts they are joined, whether the
# first is the caller, and how many are ours.
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
# Memory that a system call writes to and that is not there yet; and the clock's interrupt of a CPU that has nothing to do.
at fbt::handle_mm_fault:entry "self->in" 'dd if=/dev/zero of=/dev/null bs=256k count=1' \
	"fbt::vfs_read:entry /$mine/ { self->in = 1; } fbt::vfs_read:return /self->in/ { self->in = 0; }"
at sched:::tick 'curthread->pid == 0' 'sleep 1'
rmmod dtrace_sample brd
# A function that jumps to another one leaves that its place on the stack: who called is told as where its own return is not hooked.
for also in '' ', fbt::__x64_sys_read:return'; do
	dtrace -qn "fbt::ksys_read:entry$also /pid == \$target && probename == \"entry\"/ { printf(\"%a\", caller); stack(1); }" \
		-c 'cat /etc/passwd' | sed '/:/d; s/^ *//; /^$/d' >"/tmp/callers$also"
	sort -u "/tmp/callers$also" | wc -l
done
sort -u /tmp/callers* | wc -l
