# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# @limit: 60
# Types of arguments from the short form of type information (CTF), which stays in a stripped
# program.
t() { echo "$1"; shift; dtrace "$@" 2>&1 | sed 's/pid[0-9][0-9]*:/pidN:/'; }

show='pid$target:a.out:area:entry {
	printf("%d %d %s %d %d\n", args[0]->x, args[0]->y, stringof(args[0]->name), args[1], args[2]);
	printf("%d %s\n", args[0]->next->y, stringof(args[0]->next->name));
	print(args[1]);
	printf("\n%d\n", sizeof (struct pid$target`point));
}
pid$target:a.out:area:return { printf("%d\n", args[1]); }'
t 'arguments' -qn "$show" -c pid-types-ctf

echo 'listed'
dtrace -lvn 'pid$target:a.out:area:entry' -c pid-types-ctf | grep -A4 'Argument Types' | grep .

cd /tmp
strip -o bare "$(command -v pid-types-ctf)"
t 'stripped' -qn "$show" -c ./bare
objcopy --remove-section=.ctf bare
t 'told by nobody' -qn 'pid$target:a.out:area:entry { trace(args[0]); }' -c ./bare
rm bare
