# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: GPL-2.0-only
#
# Output that nobody reads any more ends the command quietly.
dtrace -qn 'tick-10ms { printf("line\n"); }' | head -1
echo "${PIPESTATUS[0]}"
