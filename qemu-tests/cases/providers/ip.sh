# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# @limit: 60
# Packets that this machine sends to itself, of both versions; one that is longer than the device's
# MTU is fragmented.
packet='printf("%s %s local %d, version %d bytes %d %s to %s, ", probename, args[3]->if_name, args[3]->if_local,
    args[2]->ip_ver, args[2]->ip_plength, args[2]->ip_saddr, args[2]->ip_daddr);'
dtrace -qn "ip:::send, ip:::receive /args[4]->ipv4_protocol == IPPROTO_UDP/ { $packet
	printf(\"%d %s %d flags %d offset %d of %s, no version 6: %d\\n\", args[4]->ipv4_ver, args[4]->ipv4_protostr,
	    args[4]->ipv4_length, args[4]->ipv4_flags, args[4]->ipv4_offset, args[4]->ipv4_saddr, args[5]->ipv6_ver);
}" -c 'net-events udp 4' | LC_ALL=C sort | sed '/^$/d'
ip link set lo mtu 1500
dtrace -qn "ip:::send, ip:::receive /args[4]->ipv4_protocol == IPPROTO_UDP/ {
	printf(\"%s bytes %d offset %d more %d\\n\", probename, args[2]->ip_plength, args[4]->ipv4_offset,
	    (args[4]->ipv4_flags & IPH_MF) != 0);
}" -c 'net-events udp 4' | LC_ALL=C sort | sed '/^$/d'
ip link set lo mtu 65536
dtrace -qn "ip:::send, ip:::receive /args[5]->ipv6_nexthdr == IPPROTO_UDP/ { $packet
	printf(\"%d %s %d of %s, no version 4: %d\\n\", args[5]->ipv6_ver, args[5]->ipv6_nextstr,
	    args[5]->ipv6_plen, inet_ntoa6(args[5]->ipv6_src), args[4]->ipv4_ver);
	printf(\"%s: the same %d\\n\", inet_ntoa6(args[5]->ipv6_dst), inet_ntoa6(args[5]->ipv6_dst) == args[5]->ipv6_daddr);
}" -c 'net-events udp 6' | LC_ALL=C sort | sed '/^$/d'
