# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# What the translators report about a process and a thread (also of a 32-bit program), a file and a
# disk.
mkdir /tmp/folder
echo text >/tmp/folder/file
cat >/tmp/process.d <<'D'
syscall::read:entry
/pid == $target && fds[arg0].fi_name == "file"/
{
	argv = (uint64_t *)copyin(curpsinfo->pr_argv, 8 * (curpsinfo->pr_argc + 1));
	environment = (uint64_t *)copyin(curpsinfo->pr_envp, 16);
	printf("%d arguments, the last %s, then %d; environment %s, then %d; model %d\n", curpsinfo->pr_argc,
	    copyinstr(argv[curpsinfo->pr_argc - 1]), argv[curpsinfo->pr_argc], copyinstr(environment[0]), environment[1],
	    curpsinfo->pr_dmodel);
	printf("bound to %d, node %d\n", curlwpsinfo->pr_bindpro, curlwpsinfo->pr_lgrp);
	printf("%s in %s\n", fds[arg0].fi_name, fds[arg0].fi_dirname);
	exit(0);
}
D
dtrace -qs /tmp/process.d -c 'env -i A=1 taskset -c 1 cat /tmp/folder/file' | grep -v '^text$'
# A 32-bit ELF file that calls getpid() and exit().
header='\x7fELF\1\1\1\0\0\0\0\0\0\0\0\0\2\0\3\0\1\0\0\0\x54\x80\4\x08\x34\0\0\0\0\0\0\0\0\0\0\0\x34\0\x20\0\1\0\0\0\0\0\0\0'
segment='\1\0\0\0\0\0\0\0\0\x80\4\x08\0\x80\4\x08\x64\0\0\0\x64\0\0\0\5\0\0\0\0\x10\0\0'
printf "$header$segment"'\xb8\x14\0\0\0\xcd\x80\xb8\1\0\0\0\x31\xdb\xcd\x80' >/tmp/program32
chmod 755 /tmp/program32
dtrace -qn 'syscall:ia32:getpid:entry { argv = (uint32_t *)copyin(curpsinfo->pr_argv, 4 * (curpsinfo->pr_argc + 1));
	printf("%d arguments, the last %s, then %d; model %d, bound to %d\n", curpsinfo->pr_argc,
	    copyinstr(argv[curpsinfo->pr_argc - 1]), argv[curpsinfo->pr_argc], curpsinfo->pr_dmodel, curlwpsinfo->pr_bindpro);
	exit(0); }' -c '/tmp/program32 one two'
dtrace -qn 'syscall::getppid:entry /pid == $target/ {
	printf("%d of %d threads dead\n", curpsinfo->pr_nzomb, curpsinfo->pr_nlwp); }' -c first-thread-ends
# An idle CPU runs no program, so there is no program's memory to read the arguments from.
dtrace -x cpu=0 -qn 'profile-97 /pid == 0/ { printf("idle: [%s]\n", curpsinfo->pr_psargs); exit(0); } ERROR { exit(1); }'
echo 'sh -c "kill -9 \$\$"; :' >/tmp/dies
dtrace -qn 'proc:::exit /ppid == $target && args[0] == CLD_KILLED/ { printf("killed\n"); exit(0); }' -c 'sh /tmp/dies' 2>/dev/null
! lsmod | grep -q '^loop' || rmmod loop
modprobe loop max_part=15
truncate -s 1M /tmp/disk
losetup /dev/loop3 /tmp/disk
dtrace -qn 'io:::start { printf("%s %d\n", args[1]->dev_statname, args[1]->dev_instance); exit(0); }' \
	-c 'dd if=/dev/loop3 of=/dev/null iflag=direct bs=4k count=1 status=none'
losetup -d /dev/loop3
rmmod loop
