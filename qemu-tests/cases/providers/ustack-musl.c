// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only
// @musl-gcc: -O2 -fomit-frame-pointer -fno-optimize-sibling-calls

#include "ustack-work.c"
