# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# @limit: 60
# A control call runs with an ordinary priority, or a real-time one if root waits for it. A user
# cannot use that to keep a higher priority than he may have.
. ./member
rmmod dtrace && insmod "$(cat /run/vm/module)" group=77
chmod 666 /dev/dtrace
cp "$(command -v users-nice)" /tmp
as 77 /tmp/users-nice 6 &
while [ -n "$(jobs -r)" ]; do dtrace -qn 'BEGIN { exit(0); }' >/dev/null; done
wait
rm /tmp/users-nice
rmmod dtrace && insmod "$(cat /run/vm/module)"
