// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0
// @gcc: -O2 -fomit-frame-pointer -fno-optimize-sibling-calls -static

#include "ustack-work.c"
