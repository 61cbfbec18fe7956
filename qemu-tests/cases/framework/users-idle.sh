# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# @limit: 300
# @slow: it computes beside a member of the lowest priority
# Root does not wait for a member who runs only when no other task wants to, by his scheduling
# policy or his cgroup's, while others compute and his descriptions are being matched. Without that
# root would wait for minutes, again and again.
. ./member
rmmod dtrace && insmod "$(cat /run/vm/module)" group=77
chmod 666 /dev/dtrace
all=/sys/fs/cgroup idle=/sys/fs/cgroup/users-idle
echo +cpu >$all/cgroup.subtree_control
mkdir $idle && echo 1 >$idle/cpu.idle
mkfifo /tmp/begun
cp "$(command -v device-check)" /tmp/matches
# during CGROUP COMMAND...: prints how often root can start tracing while the member runs the
# command in the cgroup.
during() {
	local hogs='' traced=0
	(echo $BASHPID >$1/cgroup.procs && own "${@:2}" >/tmp/begun) & its=$!
	read -r begun </tmp/begun
	for n in $(seq $((2 * $(nproc)))); do
		(while :; do :; done) & hogs="$hogs $!"
	done
	sleep 1
	for n in 1 2; do
		timeout 60 dtrace -qn 'BEGIN { exit(0); }' >/dev/null 2>&1 && traced=$((traced + 1))
	done
	kill $hogs $its
	wait
	echo "$begun: $traced of 2"
}
during $all chrt -i 0 /tmp/matches matches
during $idle /tmp/matches matches
rmdir $idle
rm /tmp/begun /tmp/matches
rmmod dtrace && insmod "$(cat /run/vm/module)"
