# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# @limit: 150
# Files that change while a program that has mapped them is traced: they are written to, truncated,
# or replaced, before or after probes are placed. The program behaves as it does untraced.
dir=/tmp/changed
mkdir -p $dir
from=$(dirname "$(readlink -f "$(command -v pid-loader)")")

# begin WORD...: starts a program with a library that no other process has mapped.
begin() {
	rm -f $dir/*
	cp "$from/pid-loader" "$from/late.so" $dir
	: >/tmp/out
	$dir/pid-loader "$@" >/tmp/out &
	process=$!
	await ready /tmp/out
}
again() { kill -USR1 $process; }
# at: the file offset of the instruction in greet() that adds one. write HEX: changes the number
# that it adds.
at=$(objdump -d "$from/late.so" | awk '/<greet>:/ { in_it = 1 } in_it && /lea +0x1\(%rdi\),%rax/ { sub(":", "", $1); print $1; exit }')
write() { printf "\\x$1" | dd of=$dir/late.so bs=1 seek=$((0x$at + 3)) conv=notrunc status=none; }
trace() {
	[ -z "$untraced" ] || return
	dtrace -x switchrate=10hz -qn 'BEGIN { printf("begun\n"); } pid$target:late.so:greet: { @i = count(); }
		pid$target:late.so:greet:entry { printf("%d ", arg0); } pid$target:late.so:greet:return { printf("(%d) ", arg1); }' -p $process >/tmp/traced 2>&1 &
	tracer=$!
	await -p $tracer "^begun$" /tmp/traced
}
# both NAME COMMAND: what the command starts must end the same way untraced and traced; prints what
# was traced.
both() {
	echo "$1"
	for untraced in yes ''; do
		$2
		wait $process
		status=$?
		[ -z "$untraced" ] || without="$status $(cat /tmp/out)"
	done 2>/dev/null
	wait $tracer
	[ "$without" = "$status $(cat /tmp/out)" ] && echo "ended with $status" || echo "$status instead of $without"
	grep -vxe begun -e 'dtrace: invalid .*' /tmp/traced | sed 's/.*: failed/failed/' | grep .
}

written_before() { begin open wait call; write 02; trace; again; }
both 'written to before' written_before

written_after() {
	begin open wait call wait call
	trace
	write 02
	again
	until [ "$(grep -c ready /tmp/out)" = 2 ]; do sleep 0.1; done
	again
}
both 'and after' written_after

another_build() {
	begin open wait call
	cat "$from/pid-work" >$dir/late.so
	truncate -s 1M $dir/late.so
	trace
	kill -KILL $process
}
both 'another build' another_build

cut_before() { begin open wait; : >$dir/late.so; trace; again; }
both 'cut off before' cut_before

cut_after() { begin open wait call; trace; : >$dir/late.so; again; }
both 'and after' cut_after

cut_and_written() { begin open wait call; trace; : >$dir/late.so; cat "$from/late.so" >$dir/late.so; again; }
both 'and written again' cut_and_written

replaced_before() {
	begin open wait call
	cp $dir/late.so $dir/other.so
	mv $dir/other.so $dir/late.so
	write 05
	trace
	again
}
both 'replaced before' replaced_before

replaced_after() {
	begin open wait call
	trace
	cp $dir/late.so $dir/other.so
	mv $dir/other.so $dir/late.so
	write 05
	again
}
both 'and after' replaced_after

opened_anew() {
	begin open wait close open call
	trace
	rm $dir/late.so
	cp "$from/late.so" $dir/late.so
	write 03
	again
}
both 'another one is opened' opened_anew

echo 'and works'
dtrace -qn 'pid$target:a.out:grow:entry { @ = count(); }' -c 'pid-work grow text'
rm -rf $dir
