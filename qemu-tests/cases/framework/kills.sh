# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: GPL-2.0-only
#
# @limit: 400
# Consumers are killed at any moment, fifty at a time in twenty rounds, and all memory comes back. The debug kernel has time for ten.
case $(uname -r) in
*-debug) kills 1 10 | sed 's/10 consumers/all/' ;;
*) kills 20 50 | sed 's/1000 consumers/all/' ;;
esac
