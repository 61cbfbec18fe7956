/* SPDX-License-Identifier: GPL-2.0-only */
/* SPDX-FileCopyrightText: The DTrace for Linux authors */

struct s {
	struct t inner;
};

BEGIN
{
	trace(1
}
