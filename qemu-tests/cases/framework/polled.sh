# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# @limit: 60
# @debug: quick
# A thread that waits in select() for events of processes while the tracing is stopped leaves a wait
# queue that still exists.
polled 10
