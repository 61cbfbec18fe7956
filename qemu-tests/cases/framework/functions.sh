# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: GPL-2.0-only
#
# @limit: 240
# Enables entry and return of every function of the kernel at once; afterwards none is traced.
device-check functions
