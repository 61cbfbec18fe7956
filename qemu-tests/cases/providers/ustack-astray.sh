# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# A stack pointer into the kernel, or to an address that is not or cannot be mapped: the walk loads
# nothing from there and reports no other memory in its place.
for sp in $(awk '$3 == "linux_banner" { print $1 }' /proc/kallsyms) 7ffffffff000 800000000000 fffffffffff000 100000000000000 fffffffffffffff8 8; do
	dtrace -qn 'profile-997 /pid == $target && execname == "ustack-astray"/ { @[ustack(3)] = count(); }
		END { trunc(@, 20); }' -o /tmp/stacks -c "ustack-astray $sp" || echo "status $?"
	# On its own stack: the function and its callers. On the other one: the function alone.
	awk '/`astray/ { seen = $1; next } seen { sub(/.*`/, "", $1); sub(/\+.*/, "", $1); print "called by", $1; seen = "" }' \
		/tmp/stacks | sort -u
	rm /tmp/stacks
done
