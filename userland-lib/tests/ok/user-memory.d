/* SPDX-License-Identifier: GPL-2.0-only */
/* SPDX-FileCopyrightText: The DTrace for Linux authors */

syscall::open:entry
{
	trace(copyinstr(arg0));
	this->u = (userland int *)arg1;
	trace(*this->u);
	trace(this->u[2]);
}
