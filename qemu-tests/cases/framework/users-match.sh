# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# @limit: 120
# Descriptions that take long to match are refused for a user, because all others wait meanwhile,
# for example a process that loads a kernel module. Root may use them. A search for the next probe
# lets others in.
. ./member
rmmod dtrace && insmod "$(cat /run/vm/module)" group=77
chmod 666 /dev/dtrace
seq -f '::*a*e*i*o*u*%.0f*q:{}' 1000 1029 >/tmp/many.d
echo 'BEGIN { printf("begun\n"); exit(0); }' >>/tmp/many.d
head -n 2 /tmp/many.d >/tmp/few.d && tail -n 1 /tmp/many.d >>/tmp/few.d
for who in 'as 77' ''; do
	for what in few many; do
		echo "# $what${who:+, a user}"
		$who dtrace -Zqs /tmp/$what.d 2>&1 | grep . | cut -c1-200
	done
done
