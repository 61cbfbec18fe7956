# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# @limit: 60
# A C program that includes the generated header lists providers and matches probes.
set -e
list-probes dtrace '*' | sort >/tmp/list-probes
grep '^probe' /tmp/list-probes
grep -c '^provider' /tmp/list-probes | sed 's/^[1-9][0-9]*$/some providers/'
list-probes 'no-such-*' '*' | grep '^probe' || echo "no such probe"
