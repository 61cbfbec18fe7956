# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# The programs of one command share variables and aggregations.
dtrace -qn 'BEGIN { x = 40; @a = count(); }' -n 'BEGIN { printf("%d\n", x + 2); printa("%@d\n", @a); exit(0); }'
