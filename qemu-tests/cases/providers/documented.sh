# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# @limit: 180
# The examples of docs/providers run and print something: prints how many on each page. Their output
# depends on the machine.
modprobe loop
truncate -s 16M /tmp/documented
losetup /dev/loop0 /tmp/documented
busybox mke2fs /dev/loop0 >/dev/null
mount /dev/loop0 /mnt
insmod "$(dirname "$(cat /run/vm/module)")/../provider/dtrace_sample.ko"
# Prints a page's commands with their continuation lines, as a shell shows them, each terminated by
# a NUL.
commands() {
	awk '/^    > / && on { sub(/^    > /, ""); printf "\n%s", $0; next }
		on { printf "%c", 0; on = 0 }
		/^    # dtrace / { sub(/^    # /, ""); printf "%s", $0; on = 1 }
		END { if (on) printf "%c", 0 }' "$1"
}
for page in ../../../docs/providers/*.md; do
	good=0
	while IFS= read -r -d '' command; do
		if bash -c "$command" >/tmp/documented.out 2>/tmp/documented.err </dev/null && [ -s /tmp/documented.out ]; then
			good=$((good + 1))
		else
			printf '%s\n' "$command"
			cat /tmp/documented.err
		fi
	done < <(commands "$page")
	echo "$(basename "$page" .md) $good"
done
rmmod dtrace_sample
umount /mnt
losetup -d /dev/loop0
