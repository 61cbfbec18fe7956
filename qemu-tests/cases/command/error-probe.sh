# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: GPL-2.0-only
#
# A fault is reported through ERROR and tracing lives on.
dtrace -qn 'BEGIN { printf("%d %s", *(int *)0, "x"); } BEGIN { printf("alive\n"); exit(0); }'
