# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# An enabled probe patches its own function and no other; a disabled one patches nothing.
mountpoint -q /sys/kernel/tracing || mount -t tracefs none /sys/kernel/tracing
show() { echo "$1:"; device-check patched; }
show before
export -f show
provider-check run syscall::openat:entry -- bash -c 'show syscall' | grep -v ^syscall::
provider-check run fbt:vmlinux:vfs_read: fbt:vmlinux:vfs_write:return -- bash -c 'show fbt' | grep -v ^fbt:vm
show after
