# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# @limit: 60
# With -x errtags an error begins with its tag, in scripts and on the command line; otherwise there
# is no tag.
exec 2>&1
try() {
	dtrace "$@"
	echo "status $?"
}
printf 'BEGIN\n{\n\ttrace(nosuch);\n}\n' >/tmp/tags.d
try -s /tmp/tags.d
try -x errtags -s /tmp/tags.d
try -x errtags -n 'BEGIN { x = ; }'
try -x errtags -n 'nosuch:::entry'
try -x errtags -n 'BEGIN { @ = lquantize(pid, 10, 1); }'
try -x errtags -n 'BEGIN { trace(curthread->nosuch); }'
try -x errtags -x amin=Evolving/Evolving/Common -n 'BEGIN { trace(curthread->pid); }'
try -x errtags -n 'BEGIN { trace(1); }' extra
try -x errtags -c 'sleep 9' -n 'pid$target:libc:nosuch:entry'
try -x errtags -c 'sleep 9' -n 'pid$target:libc:_exit:return'
try -x errtags -ln 'BEGIN, pid0:::'
rm /tmp/tags.d
