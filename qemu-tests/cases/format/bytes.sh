# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Bytes that are not text pass unchanged through formats: to the output, to a command, and into a
# file name.
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
