# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# -l lists the matching probes in columns, and reports if there is none.
dtrace -l -n 'dtrace:::'
dtrace -l -i 1
dtrace -l -P nosuch
echo "status $?"
