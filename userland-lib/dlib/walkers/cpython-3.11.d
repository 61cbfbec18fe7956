/*
 * SPDX-FileCopyrightText: The DTrace for Linux authors
 * SPDX-License-Identifier: GPL-2.0-only
 *
 * Frames of Python code, in CPython 3.11; cpython.d is behind this.
 */

#pragma walker requires Py_Version 0 0x030b00f0 0xffff00f0
#pragma walker address _PyRuntime
/* Of Include/internal/pycore_runtime.h, pycore_interp.h and pycore_frame.h and Include/cpython/pystate.h, code.h, bytesobject.h and unicodeobject.h. */
#pragma walker values 40 0 16 8 56 160 48 32 56 68 112 128 136 72 184 16 32 32 16 48

/* A frame has an object for what it executes. */
inline uint64_t tag = 0;
/* The thread has the evaluator's _PyCFrame, on the processor's stack, and that has the innermost frame. */
inline int has_cframe = 1;
inline uint64_t cframe_current = 8;
/* A frame says whether it is the first of an evaluator: is_entry, in place of whose it is. */
inline int has_entries = 1;
inline uint64_t cframe_previous = 16;
/* Of a string of one byte a character, behind the fields of an ASCII string. */
inline uint64_t latin_offset = 24;
