# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Types are written for tools that read CTF: those that programs declare, and those of the kernel
# that they use.
cd "$(mktemp -d)"
dtrace -xdtypes=d.ctf -xctypes=c.ctf -e -n '
	struct place { struct place *next; unsigned int flags : 3; char name[8]; void *any; };
	struct place places[2];
	BEGIN { trace(sizeof(((struct list_head *)0)->next)); }' || exit
for container in c d; do
	objcopy --add-section=.ctf=$container.ctf /bin/true $container.o
	objdump --ctf=.ctf $container.o >$container.text || exit
	grep -o 'Version: .*' $container.text
done
grep -o '(kind 2) double .*' c.text
# structure NAME MEMBER FILE: from the structure's line to its last member; type numbers are
# removed.
structure() { sed -n "/^ *0x[0-9a-f]*: (kind 6) struct $1 /,/ $2:/s/0x[0-9a-f]*: //p" $3; }
structure list_head prev c.text
structure place any d.text
grep -m 1 -o '(kind 10) uint64_t ' d.text
dtrace -xdtypes=/nonexistent/d.ctf -e -n BEGIN
echo "status $?"
