/*
 * SPDX-License-Identifier: MIT OR Apache-2.0
 * SPDX-FileCopyrightText: The DTrace for Linux authors
 *
 * Datagrams and sockets of UDP, as the provider udp passes them.
 */

#pragma D depends_on library ip.d

/* The header of a datagram. */
typedef struct udpinfo {
	uint16_t udp_sport;		/* source port */
	uint16_t udp_dport;		/* destination port */
	uint16_t udp_length;		/* size including the header, bytes */
	uint16_t udp_checksum;		/* checksum */
	struct udphdr *udp_hdr;		/* the header itself */
} udpinfo_t;

translator udpinfo_t < struct udphdr *U > {
	udp_sport = U == NULL ? 0 : ntohs(U->source);
	udp_dport = U == NULL ? 0 : ntohs(U->dest);
	udp_length = U == NULL ? 0 : ntohs(U->len);
	udp_checksum = U == NULL ? 0 : ntohs(U->check);
	udp_hdr = U;
};

/* A socket. */
typedef struct udpsinfo {
	uintptr_t udps_addr;		/* address of the udp_sock */
	uint16_t udps_lport;		/* local port */
	uint16_t udps_rport;		/* remote port if the socket is connected */
	string udps_laddr;		/* local address */
	string udps_raddr;		/* remote address */
} udpsinfo_t;

translator udpsinfo_t < struct udp_sock *U > {
	udps_addr = (uintptr_t)U;
	udps_lport = U == NULL ? 0 : ((struct sock *)U)->__sk_common.skc_num;
	udps_rport = U == NULL ? 0 : ntohs(((struct sock *)U)->__sk_common.skc_dport);
	udps_laddr = U == NULL ? "<unknown>" :
	    ((struct sock *)U)->__sk_common.skc_family == AF_INET6 ?
	    inet_ntoa6(&((struct sock *)U)->__sk_common.skc_v6_rcv_saddr) :
	    inet_ntoa(&((struct sock *)U)->__sk_common.skc_rcv_saddr);
	udps_raddr = U == NULL ? "<unknown>" :
	    ((struct sock *)U)->__sk_common.skc_family == AF_INET6 ?
	    inet_ntoa6(&((struct sock *)U)->__sk_common.skc_v6_daddr) :
	    inet_ntoa(&((struct sock *)U)->__sk_common.skc_daddr);
};
