# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: GPL-2.0-only
#
# @limit: 600
# bash everything.sh [SECONDS]: all functions, system calls, tracepoints and each instruction of a function of a process at once, while the
# machine works (`make stress`: for a minute). The work is done, a call that everything sees has been seen by each as often as it was
# made, what was entered has returned, the process computes what it would, and in the end nothing stays patched.
# The debug kernel takes so much longer that on a busy host the deadman may well find it starved.
module=$(cat /run/vm/module)
case $(uname -r) in *-debug) rmmod dtrace && insmod "$module" deadman_timeout=60000 ;; esac
mountpoint -q /sys/kernel/tracing || mount -t tracefs none /sys/kernel/tracing
modprobe loop
truncate -s 16M /tmp/everything
disk=$(losetup -f)
losetup "$disk" /tmp/everything
busybox mke2fs "$disk" >/dev/null
mkdir -p /tmp/everything.d
# The debug kernel knows this file system by that name alone.
mount -t ext4 "$disk" /tmp/everything.d || exit
rm -f /tmp/everything-counts
pid-work wait busy text >/tmp/everything-process &
process=$!
until grep -q ready /tmp/everything-process; do sleep 0.1; done
kill -USR1 $process
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
END {
	printa("%s,%@d\n", @);
	printa("all instructions,%@d\n", @instructions);
	printa("results %s,%@d\n", @results);
	printa("all functions,%@d\n", @functions);
	printa("all calls,%@d\n", @calls);
	printa("all tracepoints,%@d\n", @tracepoints);
}
D
dtrace -x aggsize=1m -qs /tmp/everything-counts.d -o /tmp/everything-counts -c "mixed-load ${1:-2} /tmp/everything.d" $process >/tmp/everything-work
echo "status $?"
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
	/^all/ { print $1, ($2 > made ? "more" : $2) }' /tmp/everything-counts | LC_ALL=C sort
umount /tmp/everything.d
losetup -d "$disk"
patched() { awk '!/^dtrace_anchor/ { n++ } END { print n + 0 }' /sys/kernel/tracing/enabled_functions; }
# Memories that had breakpoints are watched until they are gone, which is looked for once a second.
for n in {1..300}; do [ "$(patched)" = 0 ] && break; sleep 0.1; done
patched
case $(uname -r) in *-debug) rmmod dtrace && insmod "$module" ;; esac
