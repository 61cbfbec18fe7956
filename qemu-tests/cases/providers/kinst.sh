# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# @limit: 120
# Single instructions: there are probes where a disassembler sees instructions begin, and nowhere
# else; registers, stack and count are those of the calls; what is not an instruction, or must not
# be stopped at, is no probe; a module may be unloaded.
t=/sys/kernel/tracing
mountpoint -q $t || mount -t tracefs none $t
address() { awk -v func="$1" '$3 == func { print "0x" $1; exit }' /proc/kallsyms; }
# begins FUNCTION: the offsets of instructions in a function, after the call that ftrace patches.
begins() {
	local at call from
	from=$(address "$1")
	call=0x$(awk -v func="$1" '$2 == func { print $1; exit }' $t/available_filter_functions_addrs)
	objdump -dw --start-address="$(printf %#x $((call + 5)))" --stop-address="$(printf %#x $((call + 55)))" /proc/kcore |
		awk '/^ *[0-9a-f]+:\t/ { print $1 }' | while read -r at; do echo $((0x${at%:} - from)); done | head -n -1
}
begins=$(begins vfs_read)
first=${begins%%[!0-9]*}
last=${begins##*[!0-9]}
asked=$(seq -f 'kinst::vfs_read:%g' -s , "$first" "$last")
seen=$(dtrace -Zln "$asked" 2>/tmp/kinst.err | awk 'NR > 1 { print $NF }')
if [ -n "$begins" ] && [ "$(sort -u <<<"$seen")" = "$(sort -u <<<"$begins")" ]; then
	echo "where instructions begin"
else
	echo "there:" $begins "; probes:" $seen
	cat /tmp/kinst.err
fi
# All probes of a tracing are removed with one wait.
printf 'dtrace -qn "%s" -n "BEGIN { exit(0); }" >/dev/null\n' "$(sed 's/[0-9][0-9]*/kinst::vfs_read:&/g; s/ /,/g' <<<$begins | paste -sd,)" >/tmp/all
dtrace -qn 'fbt::unregister_kprobes:entry /progenyof($target)/ { n++; } END { printf("%d probes or more, removed by %d call\n", '$(wc -w <<<$begins)' > 5 ? 6 : 0, n); }' -c 'sh /tmp/all' | grep .
# Loads that may fault in probe context have no probes.
from=$(address copy_from_kernel_nofault)
loads=$(objdump -dw --start-address="$from" --stop-address="$(printf %#x $((from + 200)))" /proc/kcore |
	sed -nE 's/^ *([0-9a-f]+):.*\tmov +(0x0)?\(%r[a-z0-9]+\),%.*/\1/p' | while read -r at; do echo $((0x$at - from)); done)
careful=$(sed 's/^/kinst::copy_from_kernel_nofault:/' <<<"$loads" | paste -sd,)
echo "of ${loads:+some} loads: $(dtrace -Zln "$careful" 2>/dev/null | awk 'NR > 1 { n++ } NR == 1 && /PROVIDER/ { list = 1 } END { print list ? n + 0 : "no list" }')"
cat >/tmp/kinst.d <<D
fbt::vfs_read:entry /pid == \$target/ { self->file = arg0; calls++; }
kinst::vfs_read:$first /pid == \$target/ {
	hits++;
	same += regs[R_RDI] == self->file;
	@[func(caller), stackdepth, arg0 - $first == $(address vfs_read), ipl] = count();
}
END {
	printf("hits: %d, as often as calls: %d, with their arguments: %d\n", hits >= 2000, hits == calls, same == hits);
	printa("%a %d %d %d\n", @);
}
D
# With a breakpoint each time, then with a jump once the kernel has put one there.
for jumps in 0 1; do
	echo $jumps >/proc/sys/debug/kprobes-optimization
	dtrace -qs /tmp/kinst.d -c 'dd if=/dev/zero of=/dev/null bs=1 count=2000 status=none' |
		awk '/ksys_read/ { print $1, ($2 > 3), $3, $4; next } NF'
done
dtrace -qn "kinst::vfs_read:$first /pid == \$target/ { stack(2); exit(0); }" -c 'cat /proc/version' | sed 's/^ *//; s/+0x[0-9a-f]*$//; /^$/d' | tail -2
none=()
for name in :vfs_read:1 :vfs_read:999999 :vfs_read:09 :vfs_read:0x9 :vfs_read:-1 :nonesuch:0 ':vfs_writ*:0' :asm_exc_int3:0 \
	dtrace:dtrace_anchor:0; do
	none+=(-n "kinst:$name")
done
dtrace -l "${none[@]}" 2>&1 | grep failed
dtrace -n kinst::vfs_read:1 2>&1 | sed 's/.*: //'
copies='word = *(long *)copyin(uregs[R_RSP], 8)'
# Firings of the second probe within the first probe's copyin() are dropped, and reported when the
# second probe fires by itself: an event that reads a byte of the written data makes it fire.
echo 'e:lost/byte syscalls/sys_enter_write byte=+u0($buf):u8' >$t/dynamic_events
echo 1 >$t/events/lost/enable
dtrace -qn "kinst::vfs_read:$first /pid == \$target/ { $copies; } kinst::copy_from_user_nofault:0 { seen++; }" \
	-c 'cat /proc/self/stat' 2>&1 >/dev/null | sed 's/dtrace: [1-9][0-9]* drops* /lost: /' | sort -u
echo 0 >$t/events/lost/enable
echo >$t/dynamic_events
# A breakpoint reads what its task could read.
echo 0 >/proc/sys/debug/kprobes-optimization
write=$(begins vfs_write | head -n 1)
dtrace -qn "kinst::vfs_write:$write /pid == \$target/ { printf(\"read: %s\", copyinstr(regs[R_RSI], regs[R_RDX])); }" \
	-c 'sh -c "echo its text >/dev/null"' 2>&1 | sed '/^$/d'
# Within a breakpoint's handler, or within another probe's copyin(), an instruction's firing is
# dropped each time, and each drop is reported: the first where it does not fire any more, the
# second where its next hit is dropped as well. The kernel counts them too.
copy=$(begins copy_from_user_nofault | head -n 1)
echo "p:lost/copy copy_from_user_nofault+$copy" >$t/kprobe_events
echo 1 >$t/events/lost/enable
lost="kinst::vfs_read:$first /pid == \$target/ { $copies; } kinst::copy_from_user_nofault:$copy { seen++; } END { printf(\"seen %d\n\", seen); }"
for more in "" "fbt::vfs_read:return /pid == \$target/ { $copies; }"; do
	before=$(awk '/copy/ { print $2, $3 }' $t/kprobe_profile)
	dtrace -qn "$lost $more" -c 'dd if=/dev/zero of=/dev/null bs=1 count=5 status=none' >/tmp/kinst.out 2>/tmp/kinst.err
	after=$(awk '/copy/ { print $2, $3 }' $t/kprobe_profile)
	echo "$before $after $(awk '/^seen/ { print $2 }' /tmp/kinst.out)" | cat - /tmp/kinst.err | awk -v more="$more" '
		NR == 1 { missed = $4 - $2; refused = $3 - $1 - $5; next }
		/drops? in probe context \(recursion\)/ { told += $2; next }
		{ print }
		function exactly() { return missed > 0 && told == missed + refused && (refused > 0) == (more != "") }
		END { print "each lost is told:", exactly() }'
done
echo 0 >$t/events/lost/enable
echo >$t/kprobe_events
echo 1 >/proc/sys/debug/kprobes-optimization
modprobe dummy numdummies=0
dtrace -qn 'kinst:dummy:dummy_setup:0 { @ = count(); } END { printa("%@d\n", @); }' \
	-c 'sh -c "ip link add kinst0 type dummy; ip link del kinst0; modprobe -r dummy"' | sed '/^$/d'
dtrace -n kinst:dummy:dummy_setup:0 2>&1 | sed 's/.*: //'
modprobe dummy numdummies=0
dtrace -qn 'kinst:dummy:dummy_setup:0 { @ = count(); } END { printa("%@d\n", @); }' -c 'ip link add kinst0 type dummy' | sed '/^$/d'
modprobe -r dummy
