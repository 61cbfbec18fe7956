/* SPDX-FileCopyrightText: The DTrace for Linux authors */
/* SPDX-License-Identifier: MIT OR Apache-2.0 */

/* A shop that sells something each tenth of a second: shop-c [TIMES]. */
#include "shop.h"
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static int receipts;

static void sell(int price, const char *what)
{
	SHOP_SOLD(price, what);
	if (SHOP_RECEIPT_ENABLED()) {
		char text[64];

		snprintf(text, sizeof text, "receipt %d: %s for %d", ++receipts, what, price);
		SHOP_RECEIPT(text);
	}
}

int main(int argc, char **argv)
{
	static const char *const fruits[] = { "apple", "pear", "plum" };
	int times = argc > 1 ? atoi(argv[1]) : 10;

	for (int n = 0; n < times; n++) {
		sell(10 + n, fruits[n % 3]);
		usleep(100000);
	}
	printf("receipts: %d\n", receipts);
	return 0;
}
