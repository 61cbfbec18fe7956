/*
 * SPDX-FileCopyrightText: The DTrace for Linux authors
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Frames of Python code in CPython 3.12. The text of cpython.d follows this file.
 */

#pragma walker requires Py_Version 0 0x030c00f0 0xffff00f0
#pragma walker address _PyRuntime
/*
 * Offsets of Include/internal/pycore_runtime.h, pycore_interp.h and pycore_frame.h and
 * Include/cpython/pystate.h, code.h, bytesobject.h and unicodeobject.h.
 */
#pragma walker values 40 0 72 8 56 144 8 0 56 70 112 128 136 68 192 16 32 32 16 40

/* Mask of the tag bits in a frame's pointer to its code object: a plain pointer. */
inline uint64_t tag = 0;
/*
 * The thread points to the evaluator's _PyCFrame on the native stack, which points to the innermost
 * frame.
 */
inline int has_cframe = 1;
inline uint64_t cframe_current = 0;
inline int has_entries = 0;
inline uint64_t cframe_previous = 0;
/* Offset of the text of a Latin-1 string, after the fields of an ASCII string. */
inline uint64_t latin_offset = 16;
