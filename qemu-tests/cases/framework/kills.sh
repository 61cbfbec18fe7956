# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# @limit: 600
# @slow: it runs hundreds of consumers
# Consumers are killed at random moments, fifty at a time in four rounds, and all memory is freed.
# The debug kernel has time for ten consumers. Then consumers with probes in processes, or these
# processes, are killed. More kills reveal smaller leaks: `make run CMD='kills 60 50; kills
# processes 20 6'`.
case $(uname -r) in
*-debug) consumers='1 10' pairs='1 6' ;;
*) consumers='4 50' pairs='2 6' ;;
esac
kills $consumers | sed 's/[0-9]* consumers/all/'
kills processes $pairs | sed 's/[0-9]* pairs/all pairs/'
