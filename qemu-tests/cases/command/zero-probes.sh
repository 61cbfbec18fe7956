# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# With -Z a description may match nothing.
dtrace -Zn 'nosuch:::entry' -qn 'BEGIN { printf("on\n"); exit(0); }'
# A program without clauses may be intended, but there is nothing to wait for.
echo '/* nothing */' >/tmp/nothing.d
dtrace -x empty -s /tmp/nothing.d
echo "status $?"
rm /tmp/nothing.d
