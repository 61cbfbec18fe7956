# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# @limit: 60
# Firings of a probe on a function that D programs themselves call are dropped there, and its
# consumer is notified; other consumers are not affected.
dtrace -qn 'tick-20ms { @ = sum(*(int *)curthread); } tick-4s { exit(0); }' >/dev/null &
dtrace -qn 'fbt::copy_from_kernel_nofault:entry { @ = count(); } tick-4s { exit(0); }' >/dev/null
wait
