# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# @limit: 60
# A datagram from this machine to itself, with both versions of IP; and one with other headers
# before the UDP header.
for version in 4 6; do
	dtrace -qn 'udp:::send, udp:::receive /args[4]->udp_dport == 4321/ {
		printf("%s %d %d bytes %d, %d of version %d, %s to %s, socket %d to %d %s %s %d\n", probename,
		    args[4]->udp_sport, args[4]->udp_dport, args[4]->udp_length, args[2]->ip_plength, args[2]->ip_ver,
		    args[2]->ip_saddr, args[2]->ip_daddr, args[3]->udps_lport, args[3]->udps_rport, args[3]->udps_laddr,
		    args[3]->udps_raddr, args[1]->cs_addr == args[3]->udps_addr);
	}' -c "net-events udp $version" | LC_ALL=C sort | sed '/^$/d'
done
dtrace -qn 'ip:::send /args[5]->ipv6_hdr != NULL/ { printf("first %d\n", args[5]->ipv6_nexthdr); }
	udp:::send, udp:::receive /args[4]->udp_dport == 4321/ {
	printf("%s %d bytes of %s\n", probename, args[4]->udp_length, args[2]->ip_saddr);
}' -c 'net-events options 6' | LC_ALL=C sort | sed '/^$/d'
