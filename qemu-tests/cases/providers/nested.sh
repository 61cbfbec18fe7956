# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# A system call's probes fire outside those of the function that implements it, whichever was used
# first since the module was loaded.
calls() {
	dtrace -qn "$1 /pid == \$target/ { printf(\"%s:%s \", probeprov, probename); } END { printf(\"\n\"); }" -c 'cat /proc/version' |
		grep -o '\(syscall\|fbt\):.*' | tr ' ' '\n' | grep . | head -n 4
}
for first in syscall::read: fbt::__x64_sys_read:; do
	rmmod dtrace && insmod "$(cat /run/vm/module)"
	echo "# first $first"
	calls "$first" >/dev/null
	calls syscall::read:,fbt::__x64_sys_read:
done
