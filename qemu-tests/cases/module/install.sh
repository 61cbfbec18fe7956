# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# @limit: 240
# What `make install` installs works from there, and `make uninstall` leaves nothing.
install=$(realpath ../../../packaging/install)
built=$(cat /run/vm/module)
export DTRACE_CACHE=${built%/build/*}
modules=/usr/lib/modules/$(uname -r)
# The build directory contains the kernel's name, except for the default kernel.
case $built in
*/debug/modules/*) export KERNEL=debug ;;
*/"$(uname -r)"/modules/*) KERNEL=$(uname -r) && export KERNEL ;;
esac

# The machine's root is read-only.
for d in usr etc; do
	mkdir -p /tmp/install/$d /tmp/install/work/$d
	mount -t overlay -o "lowerdir=/$d,upperdir=/tmp/install/$d,workdir=/tmp/install/work/$d" overlay /$d || exit 1
done
# A kernel without modules of its own, because depmod would take minutes for those.
mkdir -p "$modules" /tmp/install/usr
mount -t tmpfs modules "$modules"
touch "$modules/modules.order" "$modules/modules.builtin" "$modules/modules.builtin.modinfo"
trap 'lsmod | grep -q ^dtrace || insmod "$built"; umount -l "$modules" /usr /etc; rm -rf /tmp/install /tmp/bin' EXIT

# All installed files, except those of depmod, and the group, which stays.
installed() {
	(cd /tmp/install && find usr etc ! -type d) | sed '/\/modules\//d; /^etc\/g\?s\?\(group\|hadow\)-\?$/d; /pwd.lock/d; s,demo/.*,demo/,; '"s/$(uname -r)/VERSION/" | sort -u
	find "$modules" -name '*.ko' -printf '%P\n'
}

$install / 2>&1 | sed "s/$(uname -r)/VERSION/; s/GID.*/GID/"
installed
# provider VARIABLE: the value in the manual's commands for building a provider, which must exist.
provider() { sed -n "/make install/,/DKMS/{s/\$(uname -r)/$(uname -r)/g; s/.*$1=\([^ ]*\) .*/\1/p}" ../../../docs/providers/modules.md; }
ls "$(provider DTRACE_INCLUDE)/linux/dtrace_provider.h"
awk '$2 == "__dtrace_register" { print $2, $3, $4 }' "$(provider KBUILD_EXTRA_SYMBOLS)"
rmmod dtrace
modprobe dtrace || exit 1
getent group dtrace | cut -d: -f1
/usr/sbin/dtrace -qn 'BEGIN { trace("works"); exit(0); }'
# The command reads what is installed: a library with a new name, and an edited one.
echo 'inline int ours = 42;' >/usr/lib/dtrace/ours.d
sed -i 's/EPERM = 1;/EPERM = 43;/' /usr/lib/dtrace/errno.d
/usr/sbin/dtrace -qn 'BEGIN { printf("%d %d", ours, EPERM); exit(0); }'
rm /usr/lib/dtrace/ours.d
completed() {
	( . /usr/share/bash-completion/completions/dtrace
	compopt() { :; }
	COMP_WORDS=(dtrace "$@") COMP_CWORD=$#
	_dtrace
	echo "${COMPREPLY[*]}" )
}
completed -x bufp
completed -x strs
completed -X ""
completed -P pro
rmmod dtrace
echo "-- changed by the administrator"
echo 'options dtrace anon_file=/tmp/other.dof' >>/etc/modprobe.d/dtrace.conf
modprobe dtrace && cat /sys/module/dtrace/parameters/anon_file
rmmod dtrace
echo "-- removed, with what dtrace -A has left; not so below another directory"
mkdir -p /etc/dtrace /tmp/bin
echo enabling >/etc/dtrace/anon.dof
printf '#!/bin/sh\necho "update-initramfs $*"\n' >/tmp/bin/update-initramfs
chmod 755 /tmp/bin/update-initramfs
PATH=/tmp/bin:$PATH $install --remove /tmp/elsewhere 2>&1 | sed "s/$(uname -r)/VERSION/"
cat /etc/dtrace/anon.dof
PATH=/tmp/bin:$PATH $install --remove / 2>&1 | sed "s/$(uname -r)/VERSION/"
installed
[ ! -e /etc/dtrace ] || echo "left /etc/dtrace"
modprobe -q dtrace || echo "no module"
echo "-- elsewhere"
PREFIX=/usr/local $install / 2>&1 | sed "s/$(uname -r)/VERSION/"
installed | grep local/s
PREFIX=/usr/local $install --remove / 2>&1 | tail -1 | sed "s/$(uname -r)/VERSION/"
installed
if PREFIX=local $install / 2>&1; then echo "accepted"; fi
