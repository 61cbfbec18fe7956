#!/bin/sh
# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# A script's variable gets its first value in the script, and a wider one in a program of the same
# command.

script=$(mktemp)
cat >"$script" <<'EOF'
BEGIN { x = 0; start = 0; @[1] = sum(0); }
tick-10ms /x > 4294967296/ { printf("%d %d\n", x, start > 1000000); @[x] = sum(1); exit(0); }
int narrow;
EOF
dtrace -q -s "$script" -n 'tick-10ms { narrow = timestamp; start = timestamp; x += 4294967299; }'
echo "status $?"
rm "$script"
