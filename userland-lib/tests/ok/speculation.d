/* SPDX-License-Identifier: GPL-2.0-only */
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
