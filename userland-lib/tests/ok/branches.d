/* SPDX-License-Identifier: MIT OR Apache-2.0 */
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
