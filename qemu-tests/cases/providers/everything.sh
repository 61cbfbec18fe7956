# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# @limit: 600
# @slow: it enables all probes at once, under load
# bash everything.sh [SECONDS]: enables all functions, system calls and tracepoints, each
# instruction of a function in a process, a library that is loaded and unloaded, and USDT probes,
# all at once, while the machine works. The work is done, a call that all probes see is counted by
# each as often as it was made, every entered function has returned, processes compute correct
# results, and at the end nothing stays patched. `make stress` runs this for a minute, and meanwhile
# also starts programs with probes, which fork, execute others, load libraries and exit. The debug
# kernel takes so much longer that on a busy host the deadman would fire.
module=$(cat /run/vm/module)
case $(uname -r) in *-debug) rmmod dtrace && insmod "$module" deadman_timeout=60000 ;; esac
mountpoint -q /sys/kernel/tracing || mount -t tracefs none /sys/kernel/tracing
modprobe loop
truncate -s 16M /tmp/everything
disk=$(losetup -f)
losetup "$disk" /tmp/everything
busybox mke2fs "$disk" >/dev/null
mkdir -p /tmp/everything.d
# The debug kernel knows this file system by that name only.
mount -t ext4 "$disk" /tmp/everything.d || exit
rm -f /tmp/everything-counts
pid-work wait busy text >/tmp/everything-process &
process=$!
await ready /tmp/everything-process
kill -USR1 $process
# The output of programs with USDT probes, with whether their probes are enabled masked.
programs() {
	usdt-work tell fork exec tell && usdt-dof register fire fork exec register fire remove fire && usdt-dof-file &&
		pid-loader open call fork run close done && pid-work sum fib vfork fork threads exec
} 2>&1
masked() { sed 's/^told .*/told/; s/^asks . ./asks/'; }
programs | masked >/tmp/everything-first
# Runs them again and again while everything is traced, and prints differences to the first output.
# Each waits for the consumer several times, which takes long here, so only `make stress` does it.
rounds() {
	until [ -e /tmp/everything.d/file0 ] || [ ! -e /tmp/everything-goes ]; do sleep 0.1; done
	while [ -e /tmp/everything-goes ]; do
		programs | masked >/tmp/everything-round
		diff /tmp/everything-first /tmp/everything-round
		: >/tmp/everything-rounds-some
	done
}
cat >/tmp/everything-counts.d <<'D'
fbt::: { @functions = count(); }
syscall::: { @calls = count(); }
sdt::: { @tracepoints = count(); }
syscall::getppid:entry /execname == "mixed-load"/ { @["syscall entry"] = count(); }
syscall::getppid:return /execname == "mixed-load"/ { @["syscall return"] = count(); }
fbt::*_sys_getppid:entry /execname == "mixed-load"/ { @["function entry"] = count(); }
fbt::*_sys_getppid:return /execname == "mixed-load"/ { @["function return"] = count(); }
sdt:raw_syscalls::sys_enter /execname == "mixed-load" && arg1 == 110/ { @["tracepoint"] = count(); }
fbt::vfs_write:entry /execname == "mixed-load"/ { @["entered"] = count(); }
fbt::vfs_write:return /execname == "mixed-load"/ { @["returned"] = count(); }
pid$1:a.out:grow: { @instructions = count(); }
pid$1:a.out:grow:entry { self->n = arg0; }
pid$1:a.out:grow:return /self->n/ { @results[arg1 == self->n + 1 ? "right" : "wrong"] = count(); }
pid*:late.so:greet:entry { self->greeted = arg0; }
pid*:late.so:greet:return /self->greeted/ { @results[arg1 == self->greeted + 1 ? "right" : "wrong"] = count(); self->greeted = 0; }
work*:::said-it, work*:::tail, late*:::greeted { @own = count(); }
END {
	printa("%s,%@d\n", @);
	printa("all instructions,%@d\n", @instructions);
	printa("own,%@d\n", @own);
	printa("results %s,%@d\n", @results);
	printa("all functions,%@d\n", @functions);
	printa("all calls,%@d\n", @calls);
	printa("all tracepoints,%@d\n", @tracepoints);
}
D
[ -z "${1:-}" ] || : >/tmp/everything-goes
rounds >/tmp/everything-rounds &
rounds=$!
loads='pid-loader open call fork close open call close'
# On a busy host each of these continues before its probes are created, except for one that waits
# for them.
asked='usdt-work asked tell'
dtrace -x aggsize=1m -Zqs /tmp/everything-counts.d -o /tmp/everything-counts -c "mixed-load ${1:-2} /tmp/everything.d" -c "$loads" -c "$asked" $process >/tmp/everything-work
echo "status $?"
rm -f /tmp/everything-goes
wait $rounds
cat /tmp/everything-rounds
echo "programs $(grep -c -e '^fib' -e '^done' -e '^told' /tmp/everything-first)"
[ -z "${1:-}" ] || [ -e /tmp/everything-rounds-some ] || echo 'no round of programs has ended'
rm -f /tmp/everything-rounds-some
kill -USR2 $process
wait $process
cat /tmp/everything-process
cat /tmp/everything-work /tmp/everything-counts >&2
awk -F'[ ,]' '/^calls/ { made = $2; print "the work is done" }' /tmp/everything-work
awk -F, -v made="$(sed -n 's/^calls //p' /tmp/everything-work)" '
	/^(syscall|function|tracepoint)/ { print $1, ($2 == made ? "each" : $2 " of " made) }
	/^entered/ { entered = $2 }
	/^returned/ { print "returned", ($2 == entered && $2 > 0 ? "each" : $2 " of " entered) }
	/^results/ { print $1, ($2 > 1000 ? "many" : $2) }
	/^own/ { print $1, ($2 > 0 ? "some" : "none") }
	/^all/ { print $1, ($2 > made ? "more" : $2) }' /tmp/everything-counts | LC_ALL=C sort
umount /tmp/everything.d
losetup -d "$disk"
# What the module watches for consumers that have just ended is unpatched a moment later.
for n in {1..300}; do [ "$(device-check patched | wc -l)" = 0 ] && break; sleep 0.1; done
device-check patched | wc -l
case $(uname -r) in *-debug) rmmod dtrace && insmod "$module" ;; esac
