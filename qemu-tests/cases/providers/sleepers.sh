# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: GPL-2.0-only
#
# @limit: 120
# More calls at a time than returns can be hooked: every entry fires, every return fires or is counted as lost. The debug kernel's machine
# has more memory, and so hooks more.
threads=3500
case $(uname -r) in *-debug) threads=6500 ;; esac
provider-check sleepers $threads 'fbt:vmlinux:*futex_*wait'
