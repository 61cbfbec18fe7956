# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# @limit: 120
# The life of a connection and a refused connection, both ends on this machine, with both versions
# of IP. The test compares what is sent and received: the bytes, and the segments that request,
# accept and refuse. The other segments may be merged on the way.
cat >/tmp/tcp.d <<'D'
tcp:::send, tcp:::receive
/args[4]->tcp_sport / 10 == 432 && args[4]->tcp_dport / 10 == 432/ {
	@bytes[probename, args[4]->tcp_sport, args[4]->tcp_dport] = sum(args[2]->ip_plength - args[4]->tcp_offset);
	@addresses[probename, args[2]->ip_ver, args[2]->ip_saddr, args[2]->ip_daddr] = count();
}
tcp:::send, tcp:::receive
/args[4]->tcp_sport / 10 == 432 && args[4]->tcp_dport / 10 == 432 && args[4]->tcp_flags & (TH_SYN | TH_RST)/ {
	@flags[probename, args[4]->tcp_sport, args[4]->tcp_dport, args[4]->tcp_flags & (TH_SYN | TH_RST | TH_ACK)] = count();
}
tcp:::send /args[4]->tcp_sport == 4321 && args[2]->ip_plength > args[4]->tcp_offset/ { printf("the server sent data\n"); }
tcp:::send /args[4]->tcp_sport == 4323 && args[2]->ip_plength > args[4]->tcp_offset/ {
	printf("client's data: next %d, end %d, not known %d\n", args[3]->tcps_snxt == args[4]->tcp_seq,
	    args[3]->tcps_smax == args[4]->tcp_seq, args[3]->tcps_iss + args[3]->tcps_sack_fack + args[3]->tcps_sack_snxt);
}
tcp:::receive /args[4]->tcp_dport == 4321 && args[2]->ip_plength > args[4]->tcp_offset/ {
	printf("data: window %d, next %d, socket %d\n", args[4]->tcp_window > 0,
	    args[3]->tcps_rnxt == args[4]->tcp_seq, args[1]->cs_addr == args[3]->tcps_addr);
}
tcp:::connect-request, tcp:::connect-established, tcp:::connect-refused, tcp:::accept-established, tcp:::accept-refused
/args[4]->tcp_sport / 10 == 432 && args[4]->tcp_dport / 10 == 432/ {
	printf("%s %d to %d, %s to %s, flags %x, connection %d %d %s %s local %d %s packet %d\n", probename,
	    args[4]->tcp_sport, args[4]->tcp_dport, args[2]->ip_saddr, args[2]->ip_daddr, args[4]->tcp_flags,
	    args[3]->tcps_lport, args[3]->tcps_rport, args[3]->tcps_laddr, args[3]->tcps_raddr, args[3]->tcps_local,
	    tcp_state_string[args[3]->tcps_state], args[0]->pkt_addr != 0);
}
tcp:::connect-request /args[4]->tcp_dport == 4321/ { printf("asked again after %d ms\n", args[3]->tcps_rto); }
tcp:::state-change /args[3]->tcps_lport / 10 == 432/ {
	printf("%d from %s to %s\n", args[3]->tcps_lport, tcp_state_string[args[5]->tcps_state],
	    tcp_state_string[args[3]->tcps_state]);
}
END {
	printa("%s %d to %d, %@d bytes\n", @bytes);
	printa("%s %d to %d, flags %x: %@d\n", @flags);
	printa("%s version %d, %s to %s\n", @addresses);
}
D
for version in 4 6; do
	dtrace -qs /tmp/tcp.d -c "net-events tcp $version" | LC_ALL=C sort | sed '/^$/d'
done
