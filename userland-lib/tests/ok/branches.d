/* SPDX-License-Identifier: GPL-2.0-only */
/* SPDX-FileCopyrightText: The DTrace for Linux authors */

BEGIN
{
	if (pid == 1) {
		trace(1);
	} else if (pid == 2)
		trace(2);
	else
		trace(3);
	trace(4);
}
