# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: GPL-2.0-only
#
# -Z lets a description match nothing.
dtrace -Zn 'nosuch:::entry' -qn 'BEGIN { printf("on\n"); exit(0); }'
