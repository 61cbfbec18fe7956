# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: GPL-2.0-only
#
# -e compiles and ends, -S shows the code.
dtrace -en 'BEGIN { trace(1); exit(0); }' && echo compiled
dtrace -eSn 'BEGIN { trace(1); }' | grep -c 'ret'
