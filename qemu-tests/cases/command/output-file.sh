# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# -o appends to a file and leaves standard output alone; ftruncate() empties that file, and standard
# output if it is a file. Everything after freopen() goes to its file, including the last empty
# line, while it is traced; what cannot be written is an error.
echo before > /tmp/out
dtrace -o /tmp/out -qn 'BEGIN { printf("traced\n"); exit(0); }'
cat /tmp/out
program='BEGIN { printf("gone\n"); ftruncate(); printf("left\n"); exit(0); }'
dtrace -o /tmp/out -wqn "$program"
cat /tmp/out
dtrace -wqn "$program" > /tmp/out
cat /tmp/out
dtrace -wqn "$program" | cat
dtrace -wqn 'BEGIN { printf("here\n"); freopen("/tmp/out"); printf("there\n"); exit(0); }'
cat /tmp/out
printf '#!/bin/sh\nsleep 1\ncp /tmp/out /tmp/seen\n' >/tmp/copy
chmod +x /tmp/copy
dtrace -wqn 'BEGIN { freopen("/tmp/out"); printf("written\n"); }' -c /tmp/copy
cat /tmp/seen
dtrace -wqn 'BEGIN { freopen("/dev/full"); printf("lost\n"); exit(0); }'
echo $?
rm /tmp/out /tmp/seen /tmp/copy
