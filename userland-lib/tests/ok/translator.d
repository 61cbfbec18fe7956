/* SPDX-License-Identifier: MIT OR Apache-2.0 */
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
