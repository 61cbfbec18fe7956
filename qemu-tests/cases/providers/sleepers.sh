# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: GPL-2.0-only
#
# @limit: 120
# More calls at a time than returns can be hooked: every entry fires, every return fires or is counted as lost.
provider-check sleepers 3500 'fbt:vmlinux:*futex_*wait'
