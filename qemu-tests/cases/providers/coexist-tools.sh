# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# @limit: 240
# bpftrace and trace-cmd at the same function and system call as DTrace, nested in time: each sees
# all calls while it traces, in all of its ways, in whatever order they start and end, and at the
# end nothing stays patched. What else bpftrace can do at functions is in coexist-bpf.
t=/sys/kernel/tracing
mountpoint -q $t || mount -t tracefs none $t
tmp=$(mktemp -d)

# Each runs a script, and leaves lines WAY COUNT of dd's calls in a file of its name.
ours() {
	dtrace -qn 'fbt:vmlinux:vfs_read:entry, fbt:vmlinux:vfs_read:return, syscall::read:entry, kinst::vfs_read:0 /execname == "dd"/ {
		@[strjoin(probeprov, probename)] = count(); } END { printa("%s %@d\n", @); }' -o "$tmp/ours" -c "bash $1"
}
bpf() {
	bpftrace -q -B none -o "$tmp/bpf" -c "/bin/bash $1" -e 'kprobe:vfs_read, kretprobe:vfs_read, tracepoint:syscalls:sys_enter_read
		/comm == "dd"/ { @[probe] = count(); }'
}
# With start, stop and show, because recording a file reads /proc/kallsyms. Before it stops its
# tracer, trace-cmd's reset lets it trace all functions, which takes half a minute here; so the
# tracer is stopped first.
cmd() {
	trace-cmd start -b 2000 -p function -l vfs_read -e syscalls:sys_enter_read >/dev/null
	bash "$1"
	trace-cmd stop
	trace-cmd show | awk '$1 ~ /^dd-/ { n[/: sys_read\(/ ? "read" : "function"]++ } END { for (way in n) print way, n[way] }' >"$tmp/cmd"
	echo nop >/sys/kernel/tracing/current_tracer
	trace-cmd reset
}

# The innermost tool shows the calls and reads of one dd; the middle one traces three of them, the
# outer one five.
check() {
	local n=1 who
	for who in "$@"; do
		sed 's/@\[\(.*\)\]:/\1/' "$tmp/$who" | awk -v who="$who" -v times=$n -v ways="$tmp/ways" '
			BEGIN { while ((getline <ways) > 0) one[$1] = $2 }
			NF {
				kind = $1 ~ /^read|^syscall|sys_enter/ ? "read" : "call"
				if (times == 1 && !(kind in one)) print kind, one[kind] = $2 >ways
				print who, $1, ($2 == times * one[kind] && $2 >= 500 ? "each" : $2 " of " times " times " one[kind])
			}' | LC_ALL=C sort
		n=$((n + 2))
	done
}
export tmp
dd='dd if=/dev/zero of=/dev/null bs=1 count=500 status=none'
for order in "ours cmd bpf" "cmd bpf ours"; do
	# shellcheck disable=SC2086 # words
	set -- $order
	rm -f "$tmp"/*
	declare -f ours bpf cmd >"$tmp/lib"
	echo "$dd" >"$tmp/one"
	printf '. "$tmp/lib"\n%s\n%s "$tmp/one"\n%s\n' "$dd" "$1" "$dd" >"$tmp/three"
	printf '. "$tmp/lib"\n%s\n%s "$tmp/three"\n%s\n' "$dd" "$2" "$dd" >"$tmp/five"
	"$3" "$tmp/five" | sed '/^$/d'
	echo "$3 around $2 around $1"
	check "$@"
done
device-check patched | wc -l
