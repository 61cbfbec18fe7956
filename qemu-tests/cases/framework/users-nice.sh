# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: GPL-2.0-only
#
# @limit: 60
# Who makes a control call has an ordinary priority meanwhile, or a real-time one where root waits for it. It is no way to keep more than he has.
. ./member
rmmod dtrace && insmod "$(cat /run/vm/module)" group=77
chmod 666 /dev/dtrace
cp "$(command -v users-nice)" /tmp
as 77 /tmp/users-nice 6 &
while [ -n "$(jobs -r)" ]; do dtrace -qn 'BEGIN { exit(0); }' >/dev/null; done
wait
rm /tmp/users-nice
rmmod dtrace && insmod "$(cat /run/vm/module)"
