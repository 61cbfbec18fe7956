# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# With DTRACE_DEBUG the command reports the libraries in their order: a library comes after those on
# which it depends.
cd "$(mktemp -d)"
echo '#pragma D depends_on library needed.d' >another.d
echo '#pragma D depends_on library another.d' >first.d
echo 'inline int answer = 42;' >needed.d
DTRACE_DEBUG=1 dtrace -L "$PWD" -qn 'BEGIN { printf("%d\n", answer); exit(0); }' 2>debug
sed -n 's|^dtrace DEBUG [0-9]*: library .*/\(.*\.d\) sorted ([0-9]*/[0-9]*)$|\1|p' debug
