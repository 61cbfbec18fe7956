# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: GPL-2.0-only
#
# @limit: 120
# A C program that includes the generated header lists providers and matches probes.
set -e
mkdir -p /tmp/list/linux
cp ../../../uapi/include/dtrace.h /tmp/list/linux/dtrace.h
gcc -Wall -Wextra -Werror -I /tmp/list -o /tmp/list/list list.c
/tmp/list/list dtrace '*' | sort >/tmp/list/out
grep '^probe' /tmp/list/out
grep -c '^provider' /tmp/list/out | sed 's/^[1-9][0-9]*$/some providers/'
/tmp/list/list 'no-such-*' '*' | grep '^probe' || echo "no such probe"
