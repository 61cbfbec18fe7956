/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* SPDX-FileCopyrightText: The DTrace for Linux authors */

inline int f[int x] = x;
int pids[pid_t];
inline int pids = 7;
