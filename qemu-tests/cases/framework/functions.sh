# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: GPL-2.0-only
#
# @limit: 240
# Every function of the kernel in one enabling, entry and return; afterwards none is traced.
device-check functions
