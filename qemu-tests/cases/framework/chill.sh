# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: GPL-2.0-only
#
# chill() takes as long as it says, which the time of the firing shows; it is the same firing after it.
dtrace -wqn '
	BEGIN { this->t = timestamp; this->first = strtok("a b", " "); chill(20000000); this->took = timestamp - this->t; }
	BEGIN { printf("%s %s %s\n", this->first, strtok(NULL, " "), this->took >= 20000000 ? "long" : "short"); exit(0); }'
dtrace -wqn 'BEGIN { chill(500000001); } ERROR { printf("too long\n"); exit(0); }' 2>/dev/null
# A CPU waits half of each second at most.
dtrace -wqn '
	BEGIN { chill(200000000); n++; } BEGIN { chill(200000000); n++; } BEGIN { chill(200000000); n++; }
	ERROR { refused++; } END { printf("%d and %d refused\n", n, refused); } BEGIN { exit(0); }' 2>/dev/null
