# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# @limit: 240
# Enables entry and return of every function of the kernel at once; afterwards none is traced.
device-check functions
