/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* SPDX-FileCopyrightText: The DTrace for Linux authors */

struct who { int id; };
BEGIN
{
	trace(xlate <struct who *> (curthread)->id);
}
