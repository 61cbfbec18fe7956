# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: GPL-2.0-only
#
# What the command does is told where that is asked for: the libraries in order, the one that needs another first.
cd "$(mktemp -d)"
echo '#pragma D depends_on library needed.d' >another.d
echo '#pragma D depends_on library another.d' >first.d
echo 'inline int answer = 42;' >needed.d
DTRACE_DEBUG=1 dtrace -L "$PWD" -qn 'BEGIN { printf("%d\n", answer); exit(0); }' 2>debug
sed -n 's|^dtrace DEBUG [0-9]*: library .*/\(.*\.d\) sorted ([0-9]*/[0-9]*)$|\1|p' debug
