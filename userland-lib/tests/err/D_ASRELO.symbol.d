/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* SPDX-FileCopyrightText: The DTrace for Linux authors */

#pragma D option linkmode=dynamic

BEGIN
{
	trace(&`jiffies_64);
}
