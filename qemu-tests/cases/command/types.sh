# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: GPL-2.0-only
#
# Types are written for tools that read CTF: what programs declare, and what they used of the kernel.
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
# From a structure's own line to its last member; numbers of types are nobody's business.
structure() { sed -n "/^ *0x[0-9a-f]*: (kind 6) struct $1 /,/ $2:/s/0x[0-9a-f]*: //p" $3; }
structure list_head prev c.text
structure place any d.text
grep -m 1 -o '(kind 10) uint64_t ' d.text
dtrace -xdtypes=/nonexistent/d.ctf -e -n BEGIN
echo "status $?"
