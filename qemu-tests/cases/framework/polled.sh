# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: GPL-2.0-only
#
# @limit: 60
# @debug: quick
# Who waits by select() to hear of processes while the tracing is stopped leaves a queue that is still there.
polled 10
