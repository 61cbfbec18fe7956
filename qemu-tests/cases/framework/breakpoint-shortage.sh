# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: GPL-2.0-only
#
# @limit: 200
# No tracing lacks a breakpoint without a word, whichever allocation fails that is made to place it. Where ftrace calls they are many; at
# another instruction there may be none that matters, as what the kernel makes to be faster it can do without.
insmod "$(dirname "$(cat /run/vm/module)")/../shortage/shortage.ko" || exit 1
parameters=/sys/module/shortage/parameters
printf dtrace_breakpoint_register >$parameters/only
cat >/tmp/reads <<'end'
for n in 1 2 3 4 5; do cat /proc/self/stat; done >/dev/null
end

# placed NTH DESCRIPTION: traces, where the allocation NTH fails.
placed() {
	echo 0 >$parameters/seen
	echo "$1" >$parameters/nth
	bash -c "echo \$\$ >$parameters/task; exec dtrace -qn '$2 /execname == \"cat\"/ { n++; }' \
		-n 'END { printf(\"%s\", n >= 5 ? \"traced\" : \"not traced\"); }' -c 'bash /tmp/reads'" 2>&1
	echo 0 >$parameters/task
}
# tries DESCRIPTION: the same for one allocation after the other.
tries() {
	told=0
	for nth in 1 2 3 4 5 7 9 11 14 18 23 30 40; do
		said=$(placed $nth "$1")
		[ "$(cat $parameters/seen)" -ge $nth ] || break
		case $said in
		*'1 probe could not be enabled'*'error 12'*'not traced') told=$((told + 1)) ;;
		traced) ;;
		*) echo "allocation $nth, $(cat $parameters/where): $said" ;;
		esac
	done
	echo "then $said"
}
tries kinst:vmlinux:vfs_read:0
echo "told: $((told > 4))"
# An instruction behind that call, where a jump to the kernel's own copy of it takes the breakpoint's place.
behind=$(dtrace -Zln "$(seq -f 'kinst::vfs_read:%g' -s , 9 30)" | awk 'NR == 2 { print $NF }')
tries kinst:vmlinux:vfs_read:$behind
rmmod shortage
rm -f /tmp/reads
