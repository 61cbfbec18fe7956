# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: GPL-2.0-only
#
# @debug: quick
# The device exists, and only its owner may open it.
stat -c "%A %U %G" /dev/dtrace
