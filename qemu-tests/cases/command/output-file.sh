# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: GPL-2.0-only
#
# -o appends to a file and leaves standard output alone.
echo before > /tmp/out
dtrace -o /tmp/out -qn 'BEGIN { printf("traced\n"); exit(0); }'
cat /tmp/out
rm /tmp/out
