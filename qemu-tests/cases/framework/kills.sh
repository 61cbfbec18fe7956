# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: GPL-2.0-only
#
# @limit: 600
# @slow: hundreds of consumers
# Consumers are killed at any moment, fifty at a time in four rounds, and all memory comes back. The debug kernel has time for ten. Then those
# that have probes in processes, or the process. More show smaller leaks: `make run CMD='kills 60 50; kills processes 20 6'`.
case $(uname -r) in
*-debug) consumers='1 10' pairs='1 6' ;;
*) consumers='4 50' pairs='2 6' ;;
esac
kills $consumers | sed 's/[0-9]* consumers/all/'
kills processes $pairs | sed 's/[0-9]* pairs/all pairs/'
