# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: GPL-2.0-only
#
# Words that are no options are $1, $2 … of the programs, and $$1 is text.
dtrace -qn 'BEGIN { printf("%d %s\n", $1, $$2); exit(0); }' 42 forty
