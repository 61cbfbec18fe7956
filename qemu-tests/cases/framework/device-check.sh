# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: GPL-2.0-only
#
# @limit: 300
# The control calls, used directly: see qemu-tests/src/bin/device-check.
device-check
