/* SPDX-License-Identifier: GPL-2.0-only */
/* SPDX-FileCopyrightText: The DTrace for Linux authors */

#pragma D option scratchsize=64

BEGIN
{
	p = alloca(65);
}
