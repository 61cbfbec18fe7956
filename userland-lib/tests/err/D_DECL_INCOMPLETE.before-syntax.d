/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* SPDX-FileCopyrightText: The DTrace for Linux authors */

struct s {
	struct t inner;
};

BEGIN
{
	trace(1
}
