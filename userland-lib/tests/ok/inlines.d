/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* SPDX-FileCopyrightText: The DTrace for Linux authors */

inline int TWO = 2;
inline int twice[int x] = x * TWO;
enum { A = 5, B };
typedef unsigned short u16;

BEGIN
{
	trace(twice[arg0]);
	trace((u16)B);
	trace(TASK_DEAD_FLAG);
}
