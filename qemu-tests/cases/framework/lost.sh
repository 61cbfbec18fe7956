# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: GPL-2.0-only
#
# @limit: 60
# A probe on what programs themselves call is lost where they call it, and its consumer is told; another one is not concerned.
dtrace -qn 'tick-20ms { @ = sum(*(int *)curthread); } tick-4s { exit(0); }' >/dev/null &
dtrace -qn 'fbt::copy_from_kernel_nofault:entry { @ = count(); } tick-4s { exit(0); }' >/dev/null
wait
