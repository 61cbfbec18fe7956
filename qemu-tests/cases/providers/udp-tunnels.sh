# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# @limit: 60
# @debug: never
# Datagrams that go through a tunnel. The packets that the tunnel itself sends are not datagrams.
modprobe -a dummy ipip ip6_tunnel
ip link add near type dummy
ip link add through4 type ipip local 10.98.0.1 remote 10.98.0.2
ip link add through6 type ip6tnl mode ip6ip6 local fd98::1 remote fd98::2
for device in near through4 through6; do ip link set $device up; done
ip address add 10.98.0.1/24 dev near
ip address add 10.99.0.1/24 dev through4
ip address add fd98::1/64 dev near nodad
ip address add fd99::1/64 dev through6 nodad
dtrace -qn 'ip:::send /args[2]->ip_saddr == "10.98.0.1" || args[2]->ip_saddr == "fd98::1"/ {
		printf("near %s%s\n", args[2]->ip_ver == 4 ? args[4]->ipv4_protostr : args[5]->ipv6_nextstr,
		    args[1]->cs_addr != 0 ? ", of a socket" : "");
	}
	udp:::send /pid == $target/ { printf("%s to %s port %d\n", probename, args[2]->ip_daddr, args[4]->udp_dport); }' \
	-c 'bash -c "echo >/dev/udp/10.99.0.2/4321; echo >/dev/udp/fd99::2/4321"' | LC_ALL=C sort | sed '/^$/d'
for device in through4 through6 near; do ip link del $device; done
modprobe -ra ip6_tunnel ipip dummy
