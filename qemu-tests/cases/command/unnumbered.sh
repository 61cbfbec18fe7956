# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# The numbers of CPU and probe differ between runs; they are left out for comparisons of output.
_DTRACE_TESTING=yes dtrace -n 'BEGIN { trace("begun"); exit(0); }' 2>/dev/null
