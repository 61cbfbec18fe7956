# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: GPL-2.0-only
#
# The programs of one command share variables and aggregations.
dtrace -qn 'BEGIN { x = 40; @a = count(); }' -n 'BEGIN { printf("%d\n", x + 2); printa("%@d\n", @a); exit(0); }'
