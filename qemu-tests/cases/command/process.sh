# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# -p traces a process until it ends.
sleep 2 &
dtrace -p $! -n 'BEGIN { trace($target); }' > /tmp/out
grep -c ":BEGIN *$!" /tmp/out
rm /tmp/out
