/*
 * SPDX-FileCopyrightText: The DTrace for Linux authors
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * @args: -q
 * @status: 7
 * The status of exit() is the command's, and END comes last.
 */

BEGIN
{
	printf("begin\n");
	exit(7);
}

END
{
	printf("end\n");
}
