/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* SPDX-FileCopyrightText: The DTrace for Linux authors */

#pragma D option quiet /* no header */
#pragma D option bufsize=8k
#pragma D attributes Evolving/Evolving/Common depth
#pragma D binding "1.0" depth
#pragma D depends_on provider syscall
#pragma GCC diagnostic
#ident "x"
#line 7 "other.d"
inline int depth = 3;

BEGIN
{
	trace(depth);
}
