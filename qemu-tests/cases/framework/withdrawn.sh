# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# @limit: 120
# A consumer that was stopped or killed does not affect others, although its file is open: see
# qemu-tests/src/bin/device-check/withdrawn.rs.
module=$(cat /run/vm/module)
rmmod dtrace && insmod "$module" deadman_timeout=1000 deadman_user=1000
device-check stopped forgotten
rmmod dtrace && insmod "$module"
