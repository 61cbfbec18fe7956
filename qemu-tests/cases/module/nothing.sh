# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# The functions that are exported to other modules, called without a provider and without a probe,
# do nothing.
insmod "$(dirname "$(cat /run/vm/module)")/../nothing/nothing.ko" && rmmod nothing && echo "nothing happened"
