/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* SPDX-FileCopyrightText: The DTrace for Linux authors */

BEGIN
{
	@ = lquantize(arg0, 0, 9);
	@ = lquantize(arg0, 1, 9);
}
