/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* SPDX-FileCopyrightText: The DTrace for Linux authors */

BEGIN
{
	trace(1 + 2 * 3 << 1);
	trace(sizeof (long) == 8 ? 1 : 2);
	trace(-1 < 1u);
}
