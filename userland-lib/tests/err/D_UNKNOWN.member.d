/* SPDX-License-Identifier: GPL-2.0-only */
/* SPDX-FileCopyrightText: The DTrace for Linux authors */

struct a {
	int good;
	nosuch_t *bad;
};
