# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# The module cannot be unloaded while a consumer is open, but once it is closed.
module=$(cat /run/vm/module)
exec 3<>/dev/dtrace
rmmod dtrace 2>/dev/null && echo "unloaded under a consumer"
[ -c /dev/dtrace ] && echo "still there"
exec 3>&-
rmmod dtrace && echo "gone"
[ -c /dev/dtrace ] || echo "no device"
insmod "$module" && echo "back"
