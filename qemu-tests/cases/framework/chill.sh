# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# chill() takes as long as requested, as the firing's time shows; after it the firing continues.
dtrace -wqn '
	BEGIN { this->t = timestamp; this->first = strtok("a b", " "); chill(20000000); this->took = timestamp - this->t; }
	BEGIN { printf("%s %s %s\n", this->first, strtok(NULL, " "), this->took >= 20000000 ? "long" : "short"); exit(0); }'
dtrace -wqn 'BEGIN { chill(500000001); } ERROR { printf("too long\n"); exit(0); }' 2>/dev/null
# A CPU waits for half of each second at most.
dtrace -wqn '
	BEGIN { chill(200000000); n++; } BEGIN { chill(200000000); n++; } BEGIN { chill(200000000); n++; }
	ERROR { refused++; } END { printf("%d and %d refused\n", n, refused); } BEGIN { exit(0); }' 2>/dev/null
