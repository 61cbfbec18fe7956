/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* SPDX-FileCopyrightText: The DTrace for Linux authors */

inline int OPT_x = 0;

BEGIN
{
	OPT_x ? trace(nobody) : 1;
}
