/*
 * SPDX-FileCopyrightText: The DTrace for Linux authors
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Frames of Python code in CPython 3.13. The text of cpython.d follows this file.
 */

#pragma walker requires _PyRuntime 0 0x7970677562656478
#pragma walker requires _PyRuntime 1 0x030d00f0 0xffff00f0
#pragma walker requires _PyRuntime 2 0
#pragma walker address _PyRuntime
#pragma walker words _PyRuntime 5 8 9 21 23 25 29 30 31 33 35 37 38 39 43 65 66 68 69 70

/* Mask of the tag bits in a frame's pointer to its code object: a plain pointer. */
inline uint64_t tag = 0;
/* The thread points to its innermost frame. */
inline int has_cframe = 0;
inline uint64_t cframe_current = 0;
inline int has_entries = 0;
inline uint64_t cframe_previous = 0;
/* Offset of the text of a Latin-1 string, after the fields of an ASCII string. */
inline uint64_t latin_offset = 16;
