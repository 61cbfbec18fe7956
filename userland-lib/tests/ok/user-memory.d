/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* SPDX-FileCopyrightText: The DTrace for Linux authors */

syscall::open:entry
{
	trace(copyinstr(arg0));
	this->u = (userland int *)arg1;
	trace(*this->u);
	trace(this->u[2]);
}
