# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# @limit: 300
# The control calls, used directly: see qemu-tests/src/bin/device-check.
device-check
