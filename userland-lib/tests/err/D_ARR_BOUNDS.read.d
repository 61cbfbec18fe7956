/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* SPDX-FileCopyrightText: The DTrace for Linux authors */

int a[5];
BEGIN
{
	trace(a[5]);
}
