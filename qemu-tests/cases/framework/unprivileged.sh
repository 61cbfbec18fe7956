# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: GPL-2.0-only
#
# Root that has lost its rights over the system is refused in words.
setpriv --bounding-set -sys_admin --inh-caps -sys_admin sh -c "exec 3<>/dev/dtrace" 2>&1 | grep -o "Operation not permitted"
chmod 666 /dev/dtrace
setpriv --reuid 65534 --regid 65534 --clear-groups sh -c "exec 3<>/dev/dtrace" 2>&1 | grep -o "Operation not permitted"
chmod 600 /dev/dtrace
setpriv --reuid 65534 --regid 65534 --clear-groups sh -c "exec 3<>/dev/dtrace" 2>&1 | grep -o "Permission denied"
