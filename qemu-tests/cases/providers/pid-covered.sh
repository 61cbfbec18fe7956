# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# @limit: 120
# Threads that all execute an instruction at which a debugger has a breakpoint on top of the
# module's: the probes count each call, the debugger sees what it sees in an untraced program, and
# no thread gets a signal.
. ./covered
for how in all one; do
	echo $how
	covered pid-covered $how
	echo "$how traced"
	covered traced pid-covered $how
done
