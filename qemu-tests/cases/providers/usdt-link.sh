# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# @limit: 240
# Programs whose probes are calls, which -G replaces and describes in DOF; and the options of -G.
. ./traced
rm -rf /tmp/link && mkdir /tmp/link && cd /tmp/link || exit 1
cat >shop.d <<'D'
#pragma D attributes EVOLVING/STABLE/ISA provider shop args
typedef int price_t;
provider shop {
	probe open();
	probe sold(price_t, char *);
	probe paid__by(char *who, short much) : (short much, char *who);
	probe weighed(double, unsigned char, long long, int, int, int, int, int, int, char *);
};
D
cat >shop.c <<'C'
#include <stdio.h>
#include "shop.h"
long computed;
static __attribute__((noipa)) void sell(int price)
{
	SHOP_SOLD(price, "apple");
}
__attribute__((noipa)) void opens(void)
{
#ifdef DTRACE_DOF
	/* As another header has it: the compiler makes a jump. */
	__dtrace_shop___open();
#else
	SHOP_OPEN();
#endif
}
__attribute__((noipa)) int asks(void)
{
	return SHOP_PAID_BY_ENABLED();
}
int shop(char *who)
{
	/* The page of the strings is there from here on. */
	fputs("open\n", stdout);
	opens();
	for (int i = 1; i <= 3; i++)
		sell(-i);
	if (asks()) {
		computed++;
		SHOP_PAID_BY(who, -5);
	}
	SHOP_WEIGHED(1.5, 200, -(1LL << 40), 4, 5, 6, 7, 8, -9, who);
	printf("computed %ld\n", computed);
	return 0;
}
C
echo 'int shop(char *who); int main(int argc, char **argv) { return shop(argv[0]) + argc - 1; }' >main.c
cat >registers.c <<'C'
#include <fcntl.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>
extern const char ___SUNW_dof[] __attribute__((visibility("hidden")));
static __attribute__((constructor)) void registers(void)
{
	int fd = open("/dev/dtracehelper", O_RDWR | O_CLOEXEC);

	if (ioctl(fd, 0x64746801, ___SUNW_dof) < 0)
		perror("helper");
	close(fd);
}
C
compile() { gcc -O2 -fPIC -Wall -Wextra -Werror "$@"; }
dtrace -h -s shop.d && compile -DDTRACE_DOF -c shop.c && cp shop.o before.o && dtrace -G -s shop.d shop.o -o dof.o || exit 1
compile -o shop main.c shop.o dof.o && compile -shared -o libshop.so shop.o dof.o && compile -o with-library main.c ./libshop.so &&
	compile -o registers main.c registers.c shop.o dof.o && objcopy --rename-section .SUNW_dof=.elsewhere registers registers-only
for program in shop with-library registers; do ./$program; done
# The D script defines the program's own type name.
seen='typedef int price_t; shop$target:::open { printf("%s:%s, ", probemod, probefunc); } shop$target:::sold { printf("%d %s, ", args[0], copyinstr(arg1)); @[probefunc] = count(); }
	shop$target:::paid-by { printf("%d %d %s, ", args[0], arg0, basename(copyinstr(arg1))); }
	shop$target:::weighed { printf("%.2f %d %d %d %d %d %d\n", args[0], args[1], args[2], args[5], args[7], args[8], copyinstr(arg9) == copyinstr((uintptr_t)args[9])); }'
for program in shop with-library registers registers-only; do
	t "$program" -qn "$seen" -c ./$program
done
t 'types' -lvn 'shop$target:::sold,shop$target:::paid-by' -c ./shop | grep -E 'types|Names|args'
while_traced 'programs that begin later' 'shop*:::sold, shop*:::paid-by { @[probename] = sum(arg0); }' './shop; ./with-library'

echo 'it may be done again'
dtrace -G -s shop.d shop.o -o again.o && cmp dof.o again.o && cmp -s before.o shop.o || echo 'the object is another one'
echo 'notes have not changed'
compile -c shop.c -o notes.o && cp notes.o same.o && dtrace -G -s shop.d notes.o -o plain.o && cmp notes.o same.o
readelf -SW plain.o | grep -c SUNW_dof

echo 'without what nobody loads'
size() { stat -c %s "$1"; }
contents() { objcopy -O binary -j "$2" --set-section-flags "$2=alloc,load,contents" "$1" part; }
dtrace -x strip -G -s shop.d shop.o -o bare.o
for section in .SUNW_dof .note.usdt; do
	for file in dof bare; do
		contents $file.o $section
		echo $section $file $(grep -c 'DTrace for Linux' part)
	done
done
echo 'DOF alone'
dtrace -x linktype=dof -G -s shop.d shop.o -o alone && head -c 4 alone | tail -c 3 && echo && grep -ac sell alone
dtrace -x linktype=DOF -G -s shop.d notes.o -o none 2>&1; ls none 2>&1
echo 'clauses are in it too'
for text in '' 'BEGIN { printf("a clause"); }'; do
	(cat shop.d; echo "$text") >more.d
	dtrace -G -s more.d shop.o -o more.o && contents more.o .SUNW_dof && echo $(grep -ac 'a clause' part) $(grep -ac sell part)
	dtrace -G -s more.d notes.o -o more.o && readelf -SW more.o | grep -c SUNW_dof
done
dtrace -G -s more.d shop.o -o more.o && compile -o more main.c shop.o more.o
t 'beside clauses' -qn 'shop$target:::sold { @ = sum(arg0); }' -c ./more

echo 'not defined'
sed '/weighed/d' shop.d >less.d
dtrace -G -s less.d before.o 2>&1
cp before.o less.o && dtrace -x unodefs -G -s less.d less.o -o less-dof.o && compile -o less main.c less.o less-dof.o 2>&1 | grep -o 'undefined reference.*' | sort -u
dtrace -x unodefs -G -s less.d notes.o -o less-notes.o && compile -o less main.c notes.o less-notes.o
t 'it has no types' -qn 'shop$target:::weighed { printf("%d\n", args[1]); }' -c ./less
dtrace -G -s shop.d shop.o 2>&1
for option in udefs=off udefs unodefs=perhaps linktype=coff linktype late late=dynamic late=static lazyload lazyload=off strip=2; do
	echo "$option: $(dtrace -x $option -G -s shop.d shop.o -o /dev/null 2>&1)"
done

echo 'what is made is no object, by whatever name'
cp before.o own.o && ln -s own.o link.o && ln own.o hard.o
for name in own.o ./own.o "$PWD/own.o" link.o hard.o; do
	dtrace -G -s shop.d own.o -o "$name" 2>&1 | sed "s:$PWD:FOLDER:"
done
cmp before.o own.o
echo 'it is not made before the objects are'
mount --bind own.o own.o && dtrace -G -s shop.d own.o -o own-dof.o 2>&1; umount own.o
ls own-dof.o own.o.* 2>&1
chmod 640 own.o && dtrace -G -s shop.d link.o -o own-dof.o && stat -c '%a %F' own.o link.o && cmp own.o shop.o && cmp before.o hard.o
[ own.o -nt own-dof.o ] && echo 'the object is newer'
ls own.o.* 2>&1

echo 'copies of a function'
cat >copy.c <<'C'
#ifdef DTRACE_DOF
#include "shop.h"
#else
/* Instructions within which a site would be; twice is nothing. */
#define TURN "mov $0x01010101, %%eax\n\txor %%eax, %0\n\t"
#define SHOP_SOLD(n, what) __asm__ volatile(TURN TURN TURN TURN : "+r"(n) : : "eax")
#endif
__attribute__((weak, noipa, section(".text.copy,\"axG\",@progbits,copy,comdat#"))) int copy(int n)
{
	SHOP_SOLD(n, "copy");
	return n;
}
int NAME(int n)
{
	return copy(n);
}
C
echo 'int one(int); int two(int); int printf(const char *, ...); int main(void) { return printf("%d\n", one(1) + two(1)) != 2; }' >copies.c
made() { compile -DNAME="$1" -c copy.c -o "$1.o" "${@:2}"; }
made one -DDTRACE_DOF && made two -DDTRACE_DOF -O0
dtrace -G -s shop.d one.o two.o -o copies.o 2>&1
ls copies.o 2>&1
made two -DDTRACE_DOF && dtrace -G -s shop.d one.o two.o -o copies.o && compile -o copies copies.c two.o one.o copies.o
t 'all are the same' -qn 'shop$target:::sold { @[probefunc] = count(); }' -c ./copies
made two && compile -o copies copies.c two.o one.o copies.o
t 'another is kept' -Zqn 'shop$target:::sold { @[probefunc] = count(); }' -c ./copies

echo 'a function whose name cannot be said'
long=$(printf 'f%.0s' {1..200})
compile -DDTRACE_DOF -Dsell="$long" -c shop.c -o long.o && dtrace -G -s shop.d long.o -o long-dof.o && compile -o long main.c long.o long-dof.o
t 'it is traced' -qn 'shop$target:::sold { printf("%s:%s %d\n", probemod, probefunc, arg0); }' -c ./long
cd / && rm -rf /tmp/link
