# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: GPL-2.0-only
#
# -l lists what matches, in columns, and says so where nothing does.
dtrace -l -n 'dtrace:::'
dtrace -l -i 1
dtrace -l -P nosuch
echo "status $?"
