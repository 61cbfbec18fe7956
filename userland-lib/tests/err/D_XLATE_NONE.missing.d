/* SPDX-License-Identifier: GPL-2.0-only */
/* SPDX-FileCopyrightText: The DTrace for Linux authors */

struct who { int id; };
BEGIN
{
	trace(xlate <struct who *> (curthread)->id);
}
