/*
 * SPDX-FileCopyrightText: The DTrace for Linux authors
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * aggpercpu: below the total stands what each processor has of it.
 *
 * @args: -q -x aggpercpu
 */
BEGIN { @total = sum(20); }
BEGIN { @total = sum(22); exit(0); }
