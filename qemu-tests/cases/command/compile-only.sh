# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# -e compiles and ends; -S prints the code to standard error, where it does not mix with output.
dtrace -en 'BEGIN { trace(1); exit(0); }' && echo compiled
dtrace -eSn 'BEGIN { trace(1); }' 2>&1 >/dev/null | grep -c 'ret'
