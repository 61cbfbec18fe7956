# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# @limit: 60
# A connection that both ends request at the same time, with both versions of IP:
# connect-established fires, accept-established does not.
for version in 4 6; do
	dtrace -qn 'tcp:::connect-request, tcp:::connect-established, tcp:::accept-established /args[4]->tcp_dport == 4325/ {
		printf("%s of %d\n", probename, args[3]->tcps_lport);
	}' -c "net-events crossed $version" | LC_ALL=C sort | sed '/^$/d'
done
