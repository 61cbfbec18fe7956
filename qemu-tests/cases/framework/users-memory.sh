# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# @limit: 90
# The kernel memory of a user's tracings is limited, for buffers and programs of all of them
# together, and freed when they end.
. ./member
rmmod dtrace && insmod "$(cat /run/vm/module)" group=77 user_memory=30
chmod 666 /dev/dtrace
member=(as 77 dtrace -x aggsize=64k -q)
# tell COMMAND...: prints its output and its status.
tell() {
	"$@" 2>&1 | sed '/^$/d; s/^dtrace: failed to enable [^:]*: *//; s/^dtrace: could not enable tracing: *//'
	echo "status ${PIPESTATUS[0]}"
}
end='BEGIN { printf("traced\n"); exit(0); }'
echo '# too much, or less'
tell "${member[@]}" -x bufsize=16m -x bufresize=manual -n "$end"
tell "${member[@]}" -x bufsize=16m -n "$end"
tell dtrace -q -x bufsize=16m -x bufresize=manual -n "$end"
echo '# another has nearly all'
: >/tmp/first
chmod 666 /tmp/first
own dtrace -x aggsize=64k -x bufsize=4m -x bufresize=manual -qn 'BEGIN { printf("begun\n"); } tick-1s { trace(1); }' >/tmp/first 2>&1 & first=$!
timeout 60 await begun /tmp/first
tell "${member[@]}" -x bufsize=4m -x bufresize=manual -n "$end"
kill $first
wait $first
echo '# it has ended'
tell "${member[@]}" -x bufsize=4m -x bufresize=manual -n "$end"
echo '# programs'
rmmod dtrace && insmod "$(cat /run/vm/module)" group=77 user_memory=12
chmod 666 /dev/dtrace
{
	echo "$end"
	seq -f 'dtrace:::END { trace(%.0f); }' 15000
} >/tmp/many.d
tell "${member[@]}" -x bufsize=64k -s /tmp/many.d
tell "${member[@]}" -x bufsize=64k -n "$end"
rmmod dtrace && insmod "$(cat /run/vm/module)"
