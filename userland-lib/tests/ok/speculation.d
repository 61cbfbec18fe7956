/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* SPDX-FileCopyrightText: The DTrace for Linux authors */

syscall::read:entry
{
	self->spec = speculation();
}

syscall::read:entry
/self->spec/
{
	speculate(self->spec);
	trace(arg0);
}

syscall::read:return
/self->spec/
{
	commit(self->spec);
}
