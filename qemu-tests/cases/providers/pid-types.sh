# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# @limit: 120
# Types of arguments and source lines from a program's debug information; and a program without any.
t() { echo "$1"; shift; dtrace -x temporal "$@" 2>&1 | sed 's/pid[0-9][0-9]*:/pidN:/'; }

t 'arguments' -qn 'pid$target:a.out:area:entry {
	printf("%d %d %s %d %d\n", args[0]->x, args[0]->y, stringof(args[0]->name), args[0]->low, args[0]->high);
	printf("%s %d\n", stringof(args[0]->next->name), args[0]->next->next == NULL);
	printf("%d %d\n", args[2], args[3]);
	print(*args[0]->next);
	printf("\n");
}
pid$target:a.out:area:return { printf("%d %d\n", args[0] == arg0, args[1]); }
pid$target:a.out:next:return { printf("%d\n", args[1]->y); }' -c pid-types | sed 's/name = 0x[0-9a-f]*/name = ADDRESS/'

echo 'listed'
for probe in area:entry area:return next:return both:entry first:entry; do
	dtrace -lvn 'pid$target:a.out:'$probe -c pid-types | grep -A9 'Argument Types' | grep .
done

t 'numbers with fractions' -qn 'pid$target:a.out:area:entry { printf("%.2f %d\n", args[1], args[2]); }
pid$target:a.out:half:entry { @ = sum(args[0] > 0.9); printf("%.2f\n", args[0]); self->of = args[0]; }
pid$target:a.out:half:return { printf("%.2f %d\n", args[1], args[1] * 2 == self->of); }
pid$target:a.out:mean:entry { printf("%.2f %.2f %d %.2f %.2f\n", args[0], args[1], args[2], args[9], args[11]); }
pid$target:a.out:mean:return { printf("%.3f\n", args[1]); }' -c pid-types
t 'what is no word' -qn 'pid$target:a.out:precise:entry { trace(args[0]); }' -c pid-types
t 'what is no word' -qn 'pid$target:a.out:precise:return { trace(args[1]); }' -c pid-types
t 'without a prototype' -qn 'pid$target:a.out:old:entry { printf("%.2f %d\n", args[0], args[2]); }' -c pid-types
t 'without a prototype' -qn 'pid$target:a.out:old:entry { trace(args[1]); }' -c pid-types
t 'what is no word' -qn 'pid$target:a.out:both:entry { trace(args[0]); }' -c pid-types
t 'behind it' -qn 'pid$target:a.out:both:entry { trace(args[1]); }' -c pid-types
t 'too many' -qn 'pid$target:a.out:area:entry { trace(args[4]); }' -c pid-types
t 'nothing' -qn 'pid$target:a.out:first:return { trace(args[1]); }' -c pid-types
t 'no member' -qn 'pid$target:a.out:area:entry { trace(args[0]->z); }' -c pid-types

t 'types by their names' -qn 'struct pid$target`point *last;
typedef enum pid$target`a.out`colour colour_t;
pid$target:a.out:area:entry {
	this->at = (const struct pid$target`point *)arg0;
	last = this->at->next;
	printf("%d %d %s %d\n", this->at->x, this->at->high, stringof(last->name), (colour_t)arg1 == 7);
	printf("%d %d %d\n", sizeof (struct pid$target`pid-types`point), offsetof(struct pid$target`point, next), sizeof (pid$target`twins));
}
pid$target:a.out:next:entry { print(*(struct pid$target`point *)arg0); printf("\n%d\n", last->next == NULL); }' -c pid-types | sed 's/= 0x[0-9a-f]\{9,\}/= ADDRESS/'
t 'no such type' -qn 'BEGIN { trace(sizeof (struct pid$target`pint)); }' -c pid-types | sed 's/pid[0-9]*`/pidN`/'
t 'no such typedef' -qn 'BEGIN { trace(sizeof (pid$target`a.out`pairs)); }' -c pid-types | sed 's/pid[0-9]*`/pidN`/'
t 'no such module' -qn 'BEGIN { trace(sizeof (struct pid$target`libm`point)); }' -c pid-types | sed 's/pid[0-9]*`/pidN`/'
t 'told by nobody' -qn 'BEGIN { trace(sizeof (struct pid$target`libc`point)); }' -c pid-types | sed 's/pid[0-9]*`/pidN`/'
t 'no process' -qn 'BEGIN { trace(sizeof (struct pid$target`point)); }'

t 'a line' -qn 'pid$target:a.out:pid-types.c@48: { @[probefunc, ufunc(uregs[R_RIP])] = count(); }
END { printa("%s %A %@d\n", @); }' -c pid-types
t 'half a name' -qn 'pid$target::types.c@48:' -c pid-types
t 'no such line' -qn 'pid$target:a.out:pid-types.c@49:' -c pid-types
t 'no such file' -qn 'pid$target:a.out:pid-type.c@48:' -c pid-types
t 'no such part' -qn 'pid$target:a.out:pid-types.c@48:entry' -c pid-types
t 'at one place with others' -qn 'pid$target:a.out:pid-types.c@48:,pid$target:a.out:second: { @[probename == "entry" || probename == "return"] = count(); @lines[probefunc] = count(); }
END { printa("%s %@d\n", @lines); }' -c pid-types | grep pid-types

echo 'stripped, told by another file'
cd /tmp
cp "$(command -v pid-types)" whole
objcopy --only-keep-debug whole bare.debug
strip -o bare whole
objcopy --add-gnu-debuglink=bare.debug bare
at=$(nm whole | sed -n 's/^0*\([0-9a-f]*\) T next$/0x\1/p')
t 'by its address' -qn 'pid$target:a.out:'"$at"':entry { printf("%d\n", args[0]->x); }
pid$target:a.out:'"$at"':return { printf("%d %d\n", probefunc == "'"$at"'", args[1]->x); }' -c ./bare
t 'a line' -qn 'pid$target:a.out:pid-types.c@48: { @ = count(); } END { printa("%@d\n", @); }' -c ./bare

rm bare.debug
t 'told by nobody' -qn 'pid$target:a.out:'"$at"':entry { trace(args[0]); }' -c ./bare | sed "s/$at/ADDRESS/g"
t 'no line' -qn 'pid$target:a.out:pid-types.c@48:' -c ./bare
t 'its functions' -qn 'pid$target:a.out:'"$at"':entry { printf("%d\n", *(int *)copyin(arg0, 4)); }' -c ./bare
t 'one that there is not' -qn 'pid$target:a.out:0x7:entry' -c ./bare
rm whole bare
