/* SPDX-License-Identifier: GPL-2.0-only */
/* SPDX-FileCopyrightText: The DTrace for Linux authors */

/*
 * Packets, segments and sockets, as the places of sys/places/net.rs pass them. net.c holds the
 * bodies, which run in probe context and take any addresses.
 */
#ifndef _DTRACE_NET_H
#define _DTRACE_NET_H

#include <linux/types.h>

struct flowi6;
struct net_device;
struct sk_buff;
struct sock;

/* What a packet's header says, or will say; userland-lib/dlib/ip.d has the same layout. */
struct dtrace_ip {
	/* The header; NULL if it has not been written yet. */
	const void *header;
	const void *saddr;
	const void *daddr;
	/* Number of bytes behind the header. */
	u32 plength;
	u8 version;
};

/* An end of a connection; userland-lib/dlib/tcp.d has the same layout. */
struct dtrace_tcp {
	const struct sock *sk;
	/*
	 * The same as `sk`; NULL if the kernel keeps only a few words of the connection, before it
	 * is accepted and after it has ended.
	 */
	const struct sock *whole;
	/* TCP_* of the kernel. */
	int state;
	/*
	 * Whether it sends a segment that it has sent before; set only at the place where it sends
	 * a segment.
	 */
	int resends;
	/* Time before retransmission, in milliseconds; 0 if `whole` is NULL. */
	u32 rto;
};

struct dtrace_packet {
	const struct sk_buff *skb;
	/* Device that it came from or goes to. */
	const struct net_device *device;
	/* Socket that it belongs to; NULL: none. */
	const struct sock *sk;
	/* The header behind that of struct dtrace_ip, and its protocol (IPPROTO_*). */
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

/* Numbers that the places compare: protocols, states, and bits of a segment's flags. */
#define DTRACE_NET_TCP 6
#define DTRACE_NET_UDP 17
#define DTRACE_NET_SYN_SENT 2
#define DTRACE_NET_FIN_WAIT2 5
#define DTRACE_NET_TIME_WAIT 6
#define DTRACE_NET_SYN 0x02
#define DTRACE_NET_RST 0x04
#define DTRACE_NET_ACK 0x10

#endif
