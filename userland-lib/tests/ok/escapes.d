/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* SPDX-FileCopyrightText: The DTrace for Linux authors */

BEGIN
{
	trace("\a\b\f\n\r\t\v\\\"\?\'\101\x41\0");
	trace('\'');
	trace('\n');
	trace('ab"');
	trace('\0103');
}
