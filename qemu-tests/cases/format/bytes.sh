# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: GPL-2.0-only
#
# What is no text goes through formats as it is: to the output, to a command, and into the name of a file.
cd /tmp
dtrace -wqn 'BEGIN {
	printf("\xc0\xa8 \351%%%s|", "\xff");
	system("printf %%s x\xe9\xc0");
	freopen("/tmp/name-\xe9");
	printf("here");
	exit(0);
}' | od -An -tx1
od -An -c /tmp/name-*
ls /tmp/name-* | od -An -tx1
rm /tmp/name-*
