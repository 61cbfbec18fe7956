/* SPDX-License-Identifier: GPL-2.0-only */
/* SPDX-FileCopyrightText: The DTrace for Linux authors */

pid$target:a.out:prog.c@12:
{
}
