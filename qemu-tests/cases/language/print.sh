# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# print() of structures: the kernel's, parts of them, and whole structures that translators make,
# whose members must be the same as those printed alone.
fault='ERROR { printf("a fault\n"); exit(1); }'
cat >/tmp/process.d <<'D'
syscall::getppid:entry
/pid == $target/
{
	print(*curpsinfo);
	print(*curlwpsinfo);
	printf("alone: pr_pid = 0x%x\n", curpsinfo->pr_pid);
	printf("alone: pr_ppid = 0x%x\n", curpsinfo->pr_ppid);
	printf("alone: pr_start = 0x%x\n", curpsinfo->pr_start);
	printf("alone: pr_argv = 0x%x\n", curpsinfo->pr_argv);
	printf("alone: pr_addr = 0x%x\n", curlwpsinfo->pr_addr);
	exit(0);
}
ERROR { printf("a fault\n"); exit(1); }
D
dtrace -qs /tmp/process.d -c first-thread-ends >/tmp/printed
sed -n 's/^alone: //p' /tmp/printed | while read -r member; do
	grep -q "^    .* $member\$" /tmp/printed && echo "${member%% *} is the same"
done
sed -n '/^[a-z]*info_t\|^}/p; /pr_fname/p; /pr_psargs/p; /pr_sname/p; /pr_clname/p; /pr_dmodel/p; /pr_contract/p' /tmp/printed
dtrace -qn 'BEGIN { print(curthread->comm); print(curthread->se.load); exit(0); } '"$fault" | sed -E 's/0x[0-9a-f]+/NUMBER/'
# A task has more than 8 KB, with bit-fields.
dtrace -x printsize=64k -qn 'BEGIN { print(*curthread); exit(0); } '"$fault" >/tmp/printed
sed -n '1p;$p;/^    char.* comm/p;/sched_reset_on_fork/p' /tmp/printed
dtrace -x printsize=100 -qn 'BEGIN { print(*curthread); exit(0); } '"$fault" | tail -n 3
modprobe loop
truncate -s 1M /tmp/disk
losetup /dev/loop3 /tmp/disk
dtrace -qn 'io:::start { print(*args[0]); print(args[1][0]); print(*args[2]); exit(0); } '"$fault" \
	-c 'dd if=/dev/loop3 of=/dev/null iflag=direct bs=4k count=1 status=none' | sed -E '/b_addr|b_edev|b_iodone|dev_m|fi_/s/=.*/=/'
losetup -d /dev/loop3
rmmod loop
cat >/tmp/tcp.d <<'D'
tcp:::state-change
/args[3]->tcps_rport == 9/
{
	print(*args[3]);
	print(args[5]);
	exit(0);
}
ERROR { printf("a fault\n"); exit(1); }
D
dtrace -qs /tmp/tcp.d -c 'bash -c "echo >/dev/tcp/127.0.0.1/9"' 2>/dev/null | sed -E '/rport/!s/ = (0x[0-9a-f]+|0)$/ = NUMBER/'
