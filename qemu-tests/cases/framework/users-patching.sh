# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Changes that a user's probes need in the kernel's text are made by a kernel worker, which also
# takes the CPU hotplug lock for them, because a user with the lowest priority would keep these
# locks.
. ./member
rmmod dtrace && insmod "$(cat /run/vm/module)" group=77
chmod 666 /dev/dtrace
cp "$(command -v dtrace)" /tmp/patches
mkfifo /tmp/begun
dtrace -qn 'BEGIN { printf("begun\n"); }
	fbt::smp_text_poke_batch_finish:entry, fbt::register_kprobe:entry, fbt::unregister_kprobes:entry, fbt::cpus_read_lock:entry
	/execname == "patches"/ { @[probefunc] = count(); }
	fbt::smp_text_poke_batch_finish:entry, fbt::register_kprobe:entry, fbt::unregister_kprobes:entry, fbt::cpus_read_lock:entry
	/execname != "patches" && strtok(execname, "/") == "kworker"/ { @workers[probefunc] = count(); }
	END { printa("the user called %s %@d times\n", @); printa("workers called %s\n", @workers); }' \
	>/tmp/begun & its=$!
exec 3</tmp/begun
read -r begun <&3
(own /tmp/patches -qn 'syscall::exit_group:entry { ran = vtimestamp; printf("its call\n"); } pid$target:libc.so.6:exit:entry { printf("its function\n"); }' \
	-c /bin/true) | grep . | sort
own /tmp/patches -qn 'profile-97 { fired = 1; } tick-1s { printf("its timers\n"); exit(0); }' | grep .
# What an offline CPU has recorded is read on another CPU.
for cpu in 0 1; do own taskset -c $cpu sh -c 'while :; do :; done' & busy+=($!); done
own /tmp/patches -qn 'BEGIN { printf("its buffers\n"); } profile-97 { @[cpu] = count(); } END { printa("CPU %d\n", @); }' >/tmp/buffers & tracer=$!
await its /tmp/buffers
sleep 2
echo 0 >/sys/devices/system/cpu/cpu1/online
kill -INT $tracer
wait $tracer
echo 1 >/sys/devices/system/cpu/cpu1/online
kill "${busy[@]}"
sort /tmp/buffers | grep .
setpriv --reuid 65534 --regid 77 --clear-groups --inh-caps +perfmon --ambient-caps +perfmon \
	/tmp/patches -qn 'kinst::do_nanosleep:0 { printf("an instruction\n"); exit(0); }' -c 'sleep 0.1' | sort -u | grep .
kill $its
grep . <&3 | sort
exec 3<&-
wait
rm /tmp/begun /tmp/patches
rmmod dtrace && insmod "$(cat /run/vm/module)"
