# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# @limit: 60
# Restarts a connection that is in time-wait, with both versions of IP: the listening socket
# receives the new SYN, no other one.
for version in 4 6; do
	dtrace -qn 'tcp:::receive /args[4]->tcp_dport == 4321 && (args[4]->tcp_flags & (TH_SYN | TH_ACK)) == TH_SYN/ {
		printf("asked of %s\n", tcp_state_string[args[3]->tcps_state]);
	}
	tcp:::state-change /args[3]->tcps_lport == 4321 && args[3]->tcps_state == TCP_STATE_TIME_WAIT/ { printf("waits\n"); }' \
	-c "net-events again $version" | LC_ALL=C sort | sed '/^$/d'
done
