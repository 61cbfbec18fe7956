# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: GPL-2.0-only
#
# The numbers of CPU and probe differ from run to run; who compares outputs does without.
_DTRACE_TESTING=yes dtrace -n 'BEGIN { trace("begun"); exit(0); }' 2>/dev/null
