# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# @limit: 240
# Programs whose probes come from the header of `dtrace -h` and the object of `dtrace -G`: what
# dtrace reports agrees with the definitions.
. ./printed
rm -rf /tmp/header && mkdir /tmp/header && cd /tmp/header || exit 1
cat >shop.d <<'D'
#pragma D attributes EVOLVING/STABLE/ISA provider shop provider
typedef struct sale { int price; char *what; } sale_t;
provider shop {
	probe open();
	probe sold(int, char *);
	probe paid__by(char *who, short much, sale_t *sale) : (short much, char *who, sale_t *sale);
	probe weighed(double, unsigned char, long long);
};
D
cat >shop.c <<'C'
#include <stdio.h>
#include "shop.h"
#ifdef __cplusplus
extern "C"
#endif
long computed;
struct sale { int price; const char *what; } one = { 7, "pear" };
static inline __attribute__((always_inline)) void sell(int price)
{
	SHOP_SOLD(price, "apple");
}
int main(int argc, char **argv)
{
	/* Declared by <unistd.h>, which the header includes. */
	if (getpid() < 0)
		return 1;
	/* The page of the strings is there from here on. */
	fputs("open\n", stdout);
	SHOP_OPEN();
	for (int i = 1; i <= 3; i++)
		sell(-i);
	if (SHOP_PAID_BY_ENABLED()) {
		computed++;
		SHOP_PAID_BY(argv[0], -5, &one);
	}
	SHOP_WEIGHED(1.5 * argc, 200, -(1LL << 40));
	printf("computed %ld\n", computed);
	return 0;
}
C
dtrace -h -s shop.d && gcc -O2 -Wall -Wextra -Werror -c shop.c -o main.o && gcc -o shop-c main.o && echo 'without the object'
dtrace -G -s shop.d main.o && gcc -o shop-c main.o shop.o && echo 'with the object'
./shop-c
t 'what is passed' -qn 'shop$target:::sold { printf("%d %s, ", args[0], copyinstr((uintptr_t)args[1])); @[probefunc] = count(); }
	shop$target:::open { printf("open, "); }
	shop$target:::paid-by { printf("%d %d %s ", args[0], arg0, copyinstr(arg1) == copyinstr((uintptr_t)args[1]) ? "same" : "other");
		this->sale = (int *)copyin(arg2, 4); printf("%d, ", *this->sale); }
	shop$target:::weighed { printf("%.2f %d %d\n", args[0], args[1], args[2]); }' -c ./shop-c
t 'types' -lvn 'shop$target:::paid-by,shop$target:::weighed' -c ./shop-c | grep -A4 'Argument Types'
t 'stability' -lvn 'shop$target:::sold' -c ./shop-c | grep -A3 'Attributes'
cat >asks.d <<'D'
provider asks { probe alone(int); };
D
printf '#include <stdio.h>\n#include "asks.h"\nint main(void) { return puts(ASKS_ALONE_ENABLED() ? "enabled" : "disabled") < 0; }\n' >asks.c
dtrace -h -s asks.d && gcc -O2 -o asks asks.c && ./asks
t 'asked and never fired' -qn 'asks$target:::alone { printf("fired"); }' -c ./asks
t 'nobody has promised anything' -lvn 'any$target:::numbers' -c usdt-any | grep -A3 'Argument Attributes'
t 'as many as may be' -x nusdtprobes=4 -qn 'shop$target:::{ @ = count(); }' -c ./shop-c
t 'more than may be' -x nusdtprobes=3 -qn 'shop$target:::{ @ = count(); }' -c ./shop-c | sed -E 's/process [0-9]+|pid[0-9]+/process PID/'
t 'no number' -x nusdtprobes=some -qn 'shop$target:::' -c ./shop-c
echo 'sites as others know them'
readelf -n shop-c asks | awk '/^  usdt/ { print $3 }' | sort | uniq -c
echo 'other tools read the same'
readelf -n shop-c | awk '/Provider|Name/ { print $2 }' | sort | uniq -c

t 'without a definition' -qn 'any$target:::nothing { printf("nothing, "); } any$target:::numbers { printf("%d %d %d %d, ", args[0], args[1], args[2], args[3]); }
any$target:::pointers { printf("%s %s %d %d, ", copyinstr(arg0), copyinstr(arg1), arg2, arg3 != 0); }
any$target:::other-kinds { printf("%d %d %d, ", args[0], args[1], args[2]); } any$target:::many { printf("%d %d\n", arg0, args[11]); }' -c usdt-any

echo 'mistakes'
wrong() { printf '%s\n' "$1" >wrong.d; shift; dtrace "$@" -s wrong.d ${objects:-} 2>&1; echo "= $?"; }
wrong 'struct s { int a; }; provider p { probe x(struct s); };' -h
wrong 'provider p { probe x(nonesuch_t); };' -h
wrong 'provider p1 { probe x(); };' -G
wrong "provider $(printf 'p%.0s' $(seq 54)) { probe x(); };" -G
objects=main.o wrong 'provider shop { probe open(); };' -G
objects=main.o wrong 'provider shop { probe open(int); probe sold(int, char *); probe paid__by(char *, short, int *); probe weighed(double, char, long); };' -G
objects=shop.c wrong 'provider shop { probe open(); };' -G
objects=nonesuch.o wrong 'provider shop { probe open(); };' -G
objects=main.o wrong 'BEGIN { }' -G
dtrace -h -n BEGIN -o /nonesuch/x.h 2>&1; echo "= $?"
ls wrong.o wrong.h 2>&1
cd / && rm -rf /tmp/header
