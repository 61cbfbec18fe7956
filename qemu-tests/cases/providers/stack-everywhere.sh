# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# @limit: 90
# @slow: a stack of every function
# Walking a kernel stack calls no function that has a probe: with the entries of all functions
# enabled, no firing is dropped because of recursion.
work='sh -c "while :; do ls /proc >/dev/null; done"'
for clause in '@[stackdepth] = count()' '@[stack(100)] = count()'; do
	dtrace -x aggsize=16m -qn "fbt:::entry { $clause; @all = count(); n++; } tick-1s /n > 20000/ { clear(@); trunc(@); exit(0); }" -c "$work" >/tmp/out 2>/tmp/err
	echo "all: $clause: $(awk 'NF == 1 && $1 > 5000 { print "many" }' /tmp/out) $(grep -c recursion /tmp/err)"
done

# The functions of a module appear in stacks, also if another module was loaded at its address
# before.
sample=$(dirname "$(cat /run/vm/module)")/../provider/dtrace_sample.ko
for n in 1 2; do
	insmod "$sample"
	dtrace -qn 'sample:::write-start { stack(4); }' -c 'sh -c "echo three >/proc/dtrace_sample"' | sed -nE 's/^ +([a-z_`]+)\+0x.*/\1/p' | paste -sd' '
	rmmod dtrace_sample
done
