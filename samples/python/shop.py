# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0

"""A shop that sells something each tenth of a second: shop.py [TIMES]."""

import sys
import time
import usdt

shop = usdt.Provider('shop', sold=(int, str), receipt=(str,))
fruits = ['apple', 'pear', 'plum']
receipts = 0

for n in range(int(sys.argv[1]) if len(sys.argv) > 1 else 10):
    price, what = 10 + n, fruits[n % 3]
    shop.sold(price, what)
    if shop.receipt.enabled:
        receipts += 1
        shop.receipt(f'receipt {receipts}: {what} for {price}')
    time.sleep(0.1)
print('receipts:', receipts)
