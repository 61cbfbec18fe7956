# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# @limit: 120
# Translates arguments of a USDT probe: the definition names the type, a D library has the
# translator.
rm -rf /tmp/link && mkdir -p /tmp/link/lib && cd /tmp/link || exit 1
cat >shop.d <<'D'
typedef struct sale { int price; int much; } sale_t;
typedef struct saleinfo { int si_total; string si_what; } saleinfo_t;
provider shop {
	probe sold(sale_t *sale) : (saleinfo_t *sale);
};
D
cat >lib/shop.d <<'D'
typedef struct sale { int price; int much; } sale_t;
typedef struct saleinfo { int si_total; string si_what; } saleinfo_t;
translator saleinfo_t < sale_t *S > {
	si_total = *(int *)copyin((uintptr_t)&S->price, 4) * *(int *)copyin((uintptr_t)&S->much, 4);
	si_what = "sale";
};
D
cat >shop.c <<'C'
typedef struct sale { int price; int much; } sale_t;
#include "shop.h"
int main(void) { static sale_t sale = { 6, 7 }; SHOP_SOLD(&sale); return 0; }
C
dtrace -h -s shop.d
gcc -O1 -c shop.c && dtrace -G -s shop.d shop.o -o probes.o && gcc -o shop shop.o probes.o
dtrace -L lib -lvn 'shop$target:::sold' -c ./shop 2>&1 | grep -A8 Arg
dtrace -L lib -qn 'shop$target:::sold { printf("%d %s\n", args[0]->si_total, args[0]->si_what); }' -c ./shop
# The types come with the program, the translator does not.
dtrace -qn 'typedef struct saleinfo { int si_total; } saleinfo_t; shop$target:::sold { trace(args[0]->si_total); }' -c ./shop 2>&1 |
	sed 's/shop[0-9][0-9]*/shopN/g'
cd / && rm -r /tmp/link
