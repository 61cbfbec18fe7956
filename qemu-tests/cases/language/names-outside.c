// SPDX-License-Identifier: MIT OR Apache-2.0
// SPDX-FileCopyrightText: The DTrace for Linux authors

/* The twin of names-inside: the same code under another name. */
#define FUNCTION outside
#include "names-inside.c"
