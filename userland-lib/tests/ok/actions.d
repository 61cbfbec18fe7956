/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* SPDX-FileCopyrightText: The DTrace for Linux authors */

BEGIN
{
	@a[1] = lquantize(arg0, 0, 100, 10);
	printa("%d %@d\n", @a);
	printa(@a);
	clear(@a);
	trunc(@a, 3);
	normalize(@a, 10);
	stack(3);
	ustack(5, 100);
	sym(caller);
	tracemem(arg0, 16);
	system("echo %d", pid);
	setopt("quiet", "yes");
	stop();
	raise(9);
	chill(100);
	ftruncate();
	exit(0);
}
