/*
 * SPDX-FileCopyrightText: The DTrace for Linux authors
 * SPDX-License-Identifier: GPL-2.0-only
 *
 * Frames of Python code, in CPython 3.14; cpython.d is behind this.
 */

#pragma walker requires _PyRuntime 0 0x7970677562656478
#pragma walker requires _PyRuntime 1 0x030e00f0 0xffff00f0
#pragma walker requires _PyRuntime 2 0
/* What is seldom executed lies elsewhere; Debian's build has put nearly all of it there. The first jump leads to where that begins. */
#pragma walker evaluator _PyEval_EvalFrameDefault+20
#pragma walker address _PyRuntime
#pragma walker words _PyRuntime 5 8 9 24 26 28 32 33 34 36 40 42 43 44 48 75 76 78 79 80

/* A frame has a reference for what it executes, whose lowest bits tell how that is counted (pycore_stackref.h). */
inline uint64_t tag = 3;
/* The thread has its innermost frame. */
inline int has_cframe = 0;
inline uint64_t cframe_current = 0;
inline int has_entries = 0;
inline uint64_t cframe_previous = 0;
/* Of a string of one byte a character, behind the fields of an ASCII string. */
inline uint64_t latin_offset = 16;
