# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# @limit: 600
# Demonstrations compile for this kernel and show real activity: each traces a command that does
# what the demonstration is about, and reports no errors.
demo=../../../userland-lib/demo
ran=
# try NAME COMMAND PATTERN [ARGUMENT]
try() {
	ran+=" $1.d"
	dtrace -s $demo/$1.d $4 -c "$2" >/tmp/demo.out 2>/tmp/demo.err
	local status=$?
	# Remove what a program without `quiet` always prints.
	sed -i -E "/^dtrace: (script '.*' matched [0-9]+ probes?|pid [0-9]+ has exited)\$/d" /tmp/demo.err
	if [ $status = 0 ] && [ ! -s /tmp/demo.err ] && grep -q -- "$3" /tmp/demo.out; then
		echo "$1: ok"
	else
		echo "$1: status $status; wanted a line like $3"
		head -20 /tmp/demo.out /tmp/demo.err
	fi
}
try opensnoop 'cat /etc/passwd' 'cat .* /etc/passwd$'
try execsnoop "sh -c '/bin/true; /bin/true'" 'sh .* 0 /bin/true$'
try errinfo "sh -c 'cat /nonexistent 2>/dev/null; true'" '^cat  *openat  *2 '
try syscallbyproc 'cat /etc/passwd' '^  cat  *[0-9]'
try syscallbysysc 'cat /etc/passwd' '^  openat  *[0-9]'
try syscallbypid 'cat /etc/passwd' ' cat  *openat '
try syscalllat 'cat /etc/passwd' '^  openat'
try procsystime 'cat /etc/passwd' '^openat  *[0-9]'
try rwsnoop 'cat /etc/passwd' ' cat  *R '
try readbytes 'cat /etc/passwd' '^cat  *read '
try writesize 'cat /etc/passwd' '^  cat'
try filebyproc 'cat /etc/passwd' '^  cat  */etc/passwd'
try statsnoop 'ls -l /etc/passwd' ' ls .*/etc/passwd$'
try killsnoop "sh -c 'kill -0 1'" ' sh  *1  *0  *0$'
try sigdist "sh -c 'kill -CONT \$\$'" '^sh  *18  *1$'
try exits "sh -c 'exit 0'" ' sh  *0$'
try shortlived "sh -c '/bin/true; /bin/true'" '^true  *[0-9]'
try sleepers 'sleep 0.1' '^  sleep'
try mmapsnoop "sh -c 'cat /etc/passwd; true'" ' cat .* fd [0-9]'
try forksnoop "sh -c '/bin/true; /bin/true'" ' sh  *[0-9]'
try connections "bash -c '(: 3<>/dev/tcp/127.0.0.1/9) 2>/dev/null; true'" ' bash  *127.0.0.1:9 [1-9]'
try cswstat 'sleep 3' '[0-9]  *[0-9][0-9]*$'
try runqlat 'sleep 1' '@@'
try offcpu 'sleep 1' '^  '
try cputimes 'sleep 1' ' idle '
try hotkernel 'dd if=/dev/zero of=/dev/null bs=64k count=3000 status=none' '`'
try kstacks 'dd if=/dev/zero of=/dev/null bs=64k count=3000 status=none' '`.*+0x'
try hotuser "bash -c 'for ((i = 0; i < 30000; i++)); do :; done'" '^bash`.* [0-9]'
! grep '^0x' /tmp/demo.out
try vfsstat "sh -c 'cat /etc/passwd; sleep 2'" ' vfs_read '
try vfslat 'cat /etc/passwd' '^  vfs_read'
try funccount 'cat /etc/passwd' '^  vfs_read' vfs_read
try functime 'cat /etc/passwd' '^  vfs_read' vfs_read
modprobe loop
truncate -s 4M /tmp/demo.disk
disk=$(losetup -f)
losetup "$disk" /tmp/demo.disk
try iosnoop "dd if=$disk of=/dev/null iflag=direct bs=4k count=2 status=none" ' 4096 '
try bitesize "dd if=$disk of=/dev/null iflag=direct bs=4k count=2 status=none" '4096 |@'
losetup -d "$disk"
for script in $demo/*.d; do
	# Those of boots need a boot; here they are only compiled for this kernel.
	case "$ran ${script##*/}" in
	*" ${script##*/} "*) ;;
	*" boot-"*) dtrace -e -s "$script" && echo "${script##*/} compiles" ;;
	*)
		# Those of one process have a case of their own, processes.sh, or a test in
		# programs/.
		name=${script##*/}
		grep -qw -- "${name%.d}" processes.sh ../../programs/* || echo "$name has no command"
		;;
	esac
done
rm -f /tmp/demo.*
