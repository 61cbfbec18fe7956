# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: GPL-2.0-only
#
# The numbers of CPU and probe differ between runs; they are left out for comparisons of output.
_DTRACE_TESTING=yes dtrace -n 'BEGIN { trace("begun"); exit(0); }' 2>/dev/null
