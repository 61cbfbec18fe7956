/* SPDX-License-Identifier: GPL-2.0-only */
/* SPDX-FileCopyrightText: The DTrace for Linux authors */

/*
 * Packets, segments and sockets, as the places of sys/places/net.rs pass them; net.c holds the bodies, which run in probe
 * context and read whatever address they are given.
 */
#ifndef _DTRACE_NET_H
#define _DTRACE_NET_H

#include <linux/types.h>

struct flowi6;
struct net_device;
struct sk_buff;
struct sock;

/* What a packet's header says, or will say: userland-lib/dlib/ip.d has the same layout. */
struct dtrace_ip {
	/* The header; none if it has not been written yet. */
	const void *header;
	const void *saddr;
	const void *daddr;
	/* Bytes behind the header. */
	u32 plength;
	u8 version;
};

/* An end of a connection: userland-lib/dlib/tcp.d has the same layout. */
struct dtrace_tcp {
	const struct sock *sk;
	/* The same; none where the kernel keeps but a few words of the connection, before it is accepted and after its end. */
	const struct sock *whole;
	/* TCP_* of the kernel. */
	int state;
	/* Whether it sends what it has sent before: at the place where it sends a segment, and nowhere else. */
	int resends;
	/* The time before retransmission, milliseconds; 0 where the end is not whole. */
	u32 rto;
};

struct dtrace_packet {
	const struct sk_buff *skb;
	/* Where it came from or goes to. */
	const struct net_device *device;
	/* Whose packet it is, if anybody's. */
	const struct sock *sk;
	/* The header behind the one of struct dtrace_ip, and what it is (IPPROTO_*). */
	const void *transport;
	u8 protocol;
	struct dtrace_ip ip;
};

bool dtrace_packet_of(const struct sk_buff *skb, const struct sock *sk, struct dtrace_packet *out);
bool dtrace_packet_of_flow6(const struct sk_buff *skb, const struct sock *sk, const struct flowi6 *flow,
			    struct dtrace_packet *out);
u8 dtrace_packet_brings(const struct dtrace_packet *packet);

bool dtrace_tcp_of(const struct sock *sk, struct dtrace_tcp *out);
bool dtrace_tcp_resends(const struct dtrace_tcp *tcp, const struct dtrace_packet *packet);
u8 dtrace_tcp_flags(const void *header);
u32 dtrace_tcp_seq(const void *header);
bool dtrace_tcp_was_active(const struct sock *sk, int op);
bool dtrace_tcp_waits(const struct sock *tw);
bool dtrace_tcp_ends(const struct sock *tw, const struct sk_buff *skb);
const struct sock *dtrace_udp_of(const struct sock *sk);

/* The numbers that the places compare: protocols, states, bits of a segment's flags. */
#define DTRACE_NET_TCP 6
#define DTRACE_NET_UDP 17
#define DTRACE_NET_SYN_SENT 2
#define DTRACE_NET_FIN_WAIT2 5
#define DTRACE_NET_TIME_WAIT 6
#define DTRACE_NET_SYN 0x02
#define DTRACE_NET_RST 0x04
#define DTRACE_NET_ACK 0x10

#endif
