# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Arguments that are not options are $1, $2 … in the programs, and $$1 is the text.
dtrace -qn 'BEGIN { printf("%d %s\n", $1, $$2); exit(0); }' 42 forty
