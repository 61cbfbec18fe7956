/*
 * SPDX-FileCopyrightText: The DTrace for Linux authors
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Frames of Python code in CPython 3.14. The text of cpython.d follows this file.
 */

#pragma walker requires _PyRuntime 0 0x7970677562656478
#pragma walker requires _PyRuntime 1 0x030e00f0 0xffff00f0
#pragma walker requires _PyRuntime 2 0
/*
 * Code that is rarely executed is in a separate part; in Debian's build this is nearly all of it.
 * The first jump of the function leads to the beginning of that part.
 */
#pragma walker evaluator _PyEval_EvalFrameDefault+20
#pragma walker address _PyRuntime
#pragma walker words _PyRuntime 5 8 9 24 26 28 32 33 34 36 40 42 43 44 48 75 76 78 79 80

/*
 * Mask of the tag bits in a frame's pointer to its code object: the lowest bits of a reference say
 * how it is counted (pycore_stackref.h).
 */
inline uint64_t tag = 3;
/* The thread points to its innermost frame. */
inline int has_cframe = 0;
inline uint64_t cframe_current = 0;
inline int has_entries = 0;
inline uint64_t cframe_previous = 0;
/* Offset of the text of a Latin-1 string, after the fields of an ASCII string. */
inline uint64_t latin_offset = 16;
