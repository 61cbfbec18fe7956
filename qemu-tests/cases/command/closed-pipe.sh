# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# A closed pipe on standard output ends the command quietly.
dtrace -qn 'tick-10ms { printf("line\n"); }' | head -1
echo "${PIPESTATUS[0]}"
# Messages that cannot be written end nothing.
dtrace -n 'BEGIN { trace(*(int *)0); } BEGIN { printf("begun\n"); exit(3); } END { printf("ended\n"); }' 2>/dev/full -q
echo $?
dtrace 2>/dev/full
echo $?
