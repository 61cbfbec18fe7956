# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# -c runs a command, $target is its process, and tracing ends with it.
dtrace -q -c 'sh -c "exit 3"' -n 'BEGIN { printf("%d\n", $target > 1); } END { printf("end\n"); }'
echo "status $?"
dtrace -c 'sh -c "exit 3"' -n 'tick-60s' 2>&1 >/dev/null | tail -n 1
