// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0
// @musl-gcc: -O2 -fomit-frame-pointer -fno-optimize-sibling-calls

#include "ustack-work.c"
