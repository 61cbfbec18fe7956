/* SPDX-License-Identifier: GPL-2.0-only */
/* SPDX-FileCopyrightText: The DTrace for Linux authors */

struct who { int id; string name; };
translator struct who < struct task_struct *t > {
	id = t->pid;
	name = stringof(t->comm);
};

BEGIN
{
	trace(xlate <struct who *> (curthread)->id);
	trace(xlate <struct who> (curthread).name);
}
