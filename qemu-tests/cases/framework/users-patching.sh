# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: GPL-2.0-only
#
# What a member's probes change in the kernel's text is changed by a worker of the kernel: a member of the least priority would keep the locks of that.
. ./member
rmmod dtrace && insmod "$(cat /run/vm/module)" group=77
chmod 666 /dev/dtrace
cp "$(command -v dtrace)" /tmp/patches
mkfifo /tmp/begun
dtrace -qn 'BEGIN { printf("begun\n"); }
	fbt::smp_text_poke_batch_finish:entry
	/execname == "patches"/ { @["the member"] = count(); }
	fbt::smp_text_poke_batch_finish:entry
	/execname != "patches" && strtok(execname, "/") == "kworker"/ { worked = 1; }
	END { printa("%s changed it %@d times\n", @); printf("%s\n", worked ? "workers changed it" : "no worker changed it"); }' \
	>/tmp/begun & its=$!
exec 3</tmp/begun
read -r begun <&3
(own /tmp/patches -qn 'syscall::exit_group:entry { ran = vtimestamp; printf("its call\n"); } pid$target:libc.so.6:exit:entry { printf("its function\n"); }' \
	-c /bin/true) | grep . | sort
kill $its
grep . <&3
exec 3<&-
wait
rm /tmp/begun /tmp/patches
rmmod dtrace && insmod "$(cat /run/vm/module)"
