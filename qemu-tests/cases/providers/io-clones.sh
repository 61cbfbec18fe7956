# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# @limit: 60
# @debug: never
# Writes to a device on top of a disk, which the disk receives as clones, and which need a flush:
# each of the disk's transfers starts once and ends once.
modprobe -a loop dm-mod
truncate -s 16M /tmp/disk
disk=$(losetup -f)
losetup "$disk" /tmp/disk
dmsetup create upon --noudevsync --table "0 32768 linear $disk 0"
. ./io-flushes
flushes "$disk" /dev/dm-0
dmsetup remove --noudevsync upon
losetup -d "$disk"
