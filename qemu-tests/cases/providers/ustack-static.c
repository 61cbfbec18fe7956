// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only
// @gcc: -O2 -fomit-frame-pointer -fno-optimize-sibling-calls -static

#include "ustack-work.c"
