/*
 * SPDX-FileCopyrightText: The DTrace for Linux authors
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Frames of Python code in CPython 3.11. The text of cpython.d follows this file.
 */

#pragma walker requires Py_Version 0 0x030b00f0 0xffff00f0
#pragma walker address _PyRuntime
/*
 * Offsets of Include/internal/pycore_runtime.h, pycore_interp.h and pycore_frame.h and
 * Include/cpython/pystate.h, code.h, bytesobject.h and unicodeobject.h.
 */
#pragma walker values 40 0 16 8 56 160 48 32 56 68 112 128 136 72 184 16 32 32 16 48

/* Mask of the tag bits in a frame's pointer to its code object: a plain pointer. */
inline uint64_t tag = 0;
/*
 * The thread points to the evaluator's _PyCFrame on the native stack, which points to the innermost
 * frame.
 */
inline int has_cframe = 1;
inline uint64_t cframe_current = 8;
/* A frame has is_entry, at the place of its owner: whether it is the outermost of an evaluator. */
inline int has_entries = 1;
inline uint64_t cframe_previous = 16;
/* Offset of the text of a Latin-1 string, after the fields of an ASCII string. */
inline uint64_t latin_offset = 24;
