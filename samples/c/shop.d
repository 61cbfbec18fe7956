/*
 * SPDX-FileCopyrightText: The DTrace for Linux authors
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */

#pragma D attributes EVOLVING/EVOLVING/COMMON provider shop provider
#pragma D attributes EVOLVING/EVOLVING/COMMON provider shop args

provider shop {
	/* An item was sold: its price and its name. */
	probe sold(int price, char *what);
	/* The same as text. */
	probe receipt(char *text);
};
