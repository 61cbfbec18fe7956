/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* SPDX-FileCopyrightText: The DTrace for Linux authors */

BEGIN
{
	trace(strlen(execname) + index("abc", "b"));
	trace(strjoin(execname, lltostr(pid, 16)));
	trace(substr(probefunc, 1));
	trace(htons(0x1234));
	trace(inet_ntop(2, alloca(4)));
	trace(basename(strtok("/a/b", "/")));
	bcopy(alloca(4), alloca(4), 4);
	trace(rand() % 10);
}
