# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# @limit: 60
# A debugger's breakpoint on top of the module's, met by a thread that the debugger does not trace:
# it gets the signal, as without the module, the probes fire, and the debugger is told of its own
# thread, also after the other.
. ./covered
covered pid-untraced
covered traced pid-untraced
