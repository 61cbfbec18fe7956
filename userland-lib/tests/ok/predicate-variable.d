/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* SPDX-FileCopyrightText: The DTrace for Linux authors */

BEGIN
/first++ == 0/
{
	trace(first);
}

BEGIN
/last == 0/
{
	last++;
}

BEGIN
/both == 0/
{
	if (pid) {
		both = 1;
	}
}
