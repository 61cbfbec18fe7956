# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: GPL-2.0-only
#
# @limit: 120
# Consumers are killed at any moment, ten at a time, and all memory comes back. `make run CMD='kills 20 50'` takes long.
kills 1 10
