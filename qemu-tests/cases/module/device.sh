# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# @debug: quick
# The device exists, and only its owner may open it.
stat -c "%A %U %G" /dev/dtrace
