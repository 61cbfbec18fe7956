// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

/*
 * The bodies of net.h. This object is built without ftrace: all of it runs in probe context.
 *
 * How long a packet is the buffer knows at every place, from the network header to its end; what the header says of it is
 * written late on the way out, and untrue of what the stack has merged.
 */

#include <linux/bpf.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/skbuff.h>
#include <linux/tcp.h>
#include <net/flow.h>
#include <net/inet_connection_sock.h>
#include <net/sock.h>
#include <net/tcp.h>

#include "net.h"

static_assert(DTRACE_NET_TCP == IPPROTO_TCP && DTRACE_NET_UDP == IPPROTO_UDP);
static_assert(DTRACE_NET_SYN_SENT == TCP_SYN_SENT);
static_assert(DTRACE_NET_FIN_WAIT2 == TCP_FIN_WAIT2 && DTRACE_NET_TIME_WAIT == TCP_TIME_WAIT);
static_assert(DTRACE_NET_SYN == TCPHDR_SYN && DTRACE_NET_RST == TCPHDR_RST && DTRACE_NET_ACK == TCPHDR_ACK);

static void dtrace_packet_begin(const struct sk_buff *skb, const struct sock *sk, struct dtrace_packet *out)
{
	*out = (struct dtrace_packet) {
		.skb = skb,
		.sk = sk ?: skb->sk,
		.transport = skb_transport_header(skb),
	};
}

/* sk: the socket, if the place knows it better than the packet does. The network header is in place. */
void dtrace_packet_of(const struct sk_buff *skb, const struct sock *sk, struct dtrace_packet *out)
{
	const struct iphdr *v4 = (const void *)skb_network_header(skb);
	const struct ipv6hdr *v6 = (const void *)v4;
	u32 length = skb->len - skb_network_offset(skb);

	dtrace_packet_begin(skb, sk, out);
	out->ip.header = v4;
	out->ip.version = v4->version;
	if (v4->version == 4) {
		out->ip.saddr = &v4->saddr;
		out->ip.daddr = &v4->daddr;
		out->ip.plength = length - v4->ihl * 4;
		out->protocol = v4->protocol;
	} else {
		out->ip.saddr = &v6->saddr;
		out->ip.daddr = &v6->daddr;
		out->ip.plength = length - sizeof(*v6);
		out->protocol = v6->nexthdr;
	}
}

/* A packet that gets its header of version 6 only now: it begins with what shall be behind that. */
void dtrace_packet_of_flow6(const struct sk_buff *skb, const struct sock *sk, const struct flowi6 *flow,
			    struct dtrace_packet *out)
{
	dtrace_packet_begin(skb, skb->sk ?: sk, out);
	out->ip.version = 6;
	out->ip.saddr = &flow->saddr;
	out->ip.daddr = &flow->daddr;
	out->ip.plength = skb->len;
	out->protocol = flow->flowi6_proto;
}

const struct net_device *dtrace_packet_device(const struct sk_buff *skb)
{
	return skb->dev;
}

/* Sockets of version 6 get packets of version 4 too. */
bool dtrace_packet_is_v4(const struct sk_buff *skb)
{
	return skb->protocol == htons(ETH_P_IP);
}

/* False: the socket is none of a connection, as the one by which the kernel refuses. */
bool dtrace_tcp_of(const struct sock *sk, struct dtrace_tcp *out)
{
	*out = (struct dtrace_tcp) { .state = TCP_CLOSE };
	if (!sk)
		return false;
	if (sk_fullsock(sk)) {
		if (sk->sk_type != SOCK_STREAM || sk->sk_protocol != IPPROTO_TCP)
			return false;
		out->whole = sk;
	}
	out->sk = sk;
	out->state = sk->sk_state;
	return true;
}

/* Whether what it sends was sent before. */
bool dtrace_tcp_retransmits(const struct dtrace_tcp *tcp)
{
	return tcp->whole && inet_csk(tcp->sk)->icsk_retransmits;
}

u8 dtrace_tcp_flags(const void *header)
{
	return tcp_flag_byte(header);
}

u32 dtrace_tcp_seq(const void *header)
{
	return ntohl(((const struct tcphdr *)header)->seq);
}

/* Which side of a connection tells BPF by this that it stands. */
bool dtrace_tcp_was_active(int op)
{
	return op == BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB;
}

/* Whether this is the other side's last segment, for a connection without a socket that has not had it yet. */
bool dtrace_tcp_ends(const struct sock *tw, const struct sk_buff *skb)
{
	u8 flags = TCP_SKB_CB(skb)->tcp_flags & (TCPHDR_FIN | TCPHDR_SYN | TCPHDR_RST | TCPHDR_ACK);

	return READ_ONCE(inet_twsk(tw)->tw_substate) == TCP_FIN_WAIT2 && flags == (TCPHDR_FIN | TCPHDR_ACK) &&
	       TCP_SKB_CB(skb)->end_seq == tcp_twsk(tw)->tw_rcv_nxt + 1;
}

/* The socket, if it is one of UDP. */
const struct sock *dtrace_udp_of(const struct sock *sk)
{
	if (!sk || !sk_fullsock(sk) || sk->sk_type != SOCK_DGRAM)
		return NULL;
	return sk->sk_protocol == IPPROTO_UDP ? sk : NULL;
}
