# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# @status: 0
# Every kind of bad input gives one message and its own status.
try() {
	"$@"
	echo "status $?"
}
exec 2>&1
try dtrace -n 'nosuch:::entry'
try dtrace -n 'BEGIN { x = ; }'
try dtrace -n 'BEGIN { trace(nosuch); }'
try dtrace -x nosuch -n BEGIN
try dtrace -x bufsize=many -n BEGIN
try dtrace -b 4x -n BEGIN
try dtrace -s /nonexistent.d
try dtrace -q
try dtrace -p 99999999 -n BEGIN
try dtrace -n '#error stop'
try dtrace -c /nonexistent -n BEGIN
dtrace -Y | head -1
