# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# @limit: 120
# More simultaneous calls than returns can be hooked: every entry fires, and every return fires or
# is counted as dropped. The debug kernel's machine has more memory and so can hook more returns.
threads=3500
case $(uname -r) in *-debug) threads=6500 ;; esac
provider-check sleepers $threads 'fbt:vmlinux:*futex_*wait'
