// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

/*
 * The bodies of net.h. This object is built without ftrace, because all of it runs in probe
 * context.
 *
 * A place passes the registers that its function is called with. If a function ignores an argument,
 * because its kernel is configured without what the argument is for, a compiler that knows this
 * leaves the register unset, and it may hold anything. So all that is read here is read as D
 * programs read memory (loads that may fault), and what cannot be read is no packet or no socket.
 *
 * The length of a packet is taken from the buffer: at every place it extends from the network
 * header to the buffer's end. The header's own length is written late on the way out, and is wrong
 * for packets that the stack has merged.
 */

#include <linux/bpf.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/net.h>
#include <linux/skbuff.h>
#include <linux/tcp.h>
#include <linux/uaccess.h>
#include <net/flow.h>
#include <net/inet_connection_sock.h>
#include <net/ipv6.h>
#include <net/sock.h>
#include <net/tcp.h>

#include "net.h"

static_assert(DTRACE_NET_TCP == IPPROTO_TCP && DTRACE_NET_UDP == IPPROTO_UDP);
static_assert(DTRACE_NET_SYN_SENT == TCP_SYN_SENT);
static_assert(DTRACE_NET_FIN_WAIT2 == TCP_FIN_WAIT2 && DTRACE_NET_TIME_WAIT == TCP_TIME_WAIT);
static_assert(DTRACE_NET_SYN == TCPHDR_SYN && DTRACE_NET_RST == TCPHDR_RST && DTRACE_NET_ACK == TCPHDR_ACK);

/* Copies `skb` and fills in what is the same for all packets. */
static bool dtrace_packet_begin(const struct sk_buff *skb, struct sk_buff *copy, struct dtrace_packet *out)
{
	if (copy_from_kernel_nofault(copy, skb, sizeof(*copy)))
		return false;
	*out = (struct dtrace_packet) {
		.skb = skb,
		.device = copy->dev,
		/* As skb_transport_header(), which warns if there is none. */
		.transport = copy->head + copy->transport_header,
	};
	return true;
}

/*
 * Describes a packet whose network header is in place. `sk`: the socket, if the place knows it
 * better than the packet does. False: no packet can be read.
 */
bool dtrace_packet_of(const struct sk_buff *skb, const struct sock *sk, struct dtrace_packet *out)
{
	struct sk_buff copy;
	struct iphdr v4;
	const struct ipv6hdr *v6 = (const void *)&v4;
	const void *header;
	u32 length;

	/* All that is needed of a header of either version is in its first 20 bytes. */
	static_assert(offsetofend(struct ipv6hdr, nexthdr) <= sizeof(v4));
	if (!dtrace_packet_begin(skb, &copy, out))
		return false;
	header = skb_network_header(&copy);
	length = copy.len - skb_network_offset(&copy);
	if (copy_from_kernel_nofault(&v4, header, sizeof(v4)))
		return false;
	out->sk = sk ?: copy.sk;
	out->ip.header = header;
	out->ip.version = v4.version;
	if (v4.version == 4) {
		out->ip.saddr = header + offsetof(struct iphdr, saddr);
		out->ip.daddr = header + offsetof(struct iphdr, daddr);
		out->ip.plength = length - v4.ihl * 4;
		out->protocol = v4.protocol;
	} else {
		out->ip.saddr = header + offsetof(struct ipv6hdr, saddr);
		out->ip.daddr = header + offsetof(struct ipv6hdr, daddr);
		out->ip.plength = length - sizeof(*v6);
		out->protocol = v6->nexthdr;
	}
	return true;
}

/*
 * Describes a packet that is about to get its header of version 6: its data begins with what will
 * be behind that header.
 */
bool dtrace_packet_of_flow6(const struct sk_buff *skb, const struct sock *sk, const struct flowi6 *flow,
			    struct dtrace_packet *out)
{
	struct sk_buff copy;

	if (!dtrace_packet_begin(skb, &copy, out) || get_kernel_nofault(out->protocol, &flow->flowi6_proto))
		return false;
	out->sk = copy.sk ?: sk;
	out->ip.version = 6;
	out->ip.saddr = &flow->saddr;
	out->ip.daddr = &flow->daddr;
	out->ip.plength = copy.len;
	return true;
}

/*
 * The protocol of a packet that this machine sends, its header written, behind the extension
 * headers that a program may have put in between in version 6. At most four of these are passed
 * over. What a tunnel or IPsec has made of the packet is their protocol.
 */
u8 dtrace_packet_brings(const struct dtrace_packet *packet)
{
	const void *at = packet->ip.header + sizeof(struct ipv6hdr);
	u8 protocol = packet->protocol;
	struct ipv6_opt_hdr between;
	int n;

	if (packet->ip.version != 6)
		return protocol;
	for (n = 0; n < 4; n++) {
		if (protocol != NEXTHDR_HOP && protocol != NEXTHDR_ROUTING && protocol != NEXTHDR_DEST)
			break;
		if (get_kernel_nofault(between, (const struct ipv6_opt_hdr *)at))
			break;
		protocol = between.nexthdr;
		at += ipv6_optlen(&between);
	}
	return protocol;
}

/*
 * Reads a socket's state; false: no socket can be read. *whole is what sk_fullsock() returns: the
 * socket is more than the few words that are kept before and after a connection.
 */
static bool dtrace_sock_of(const struct sock *sk, int *state, bool *whole)
{
	unsigned char now;

	if (!sk || get_kernel_nofault(now, (const unsigned char *)&sk->sk_state) || now >= TCP_MAX_STATES)
		return false;
	*state = now;
	*whole = (1 << now) & ~(TCPF_TIME_WAIT | TCPF_NEW_SYN_RECV);
	return true;
}

/* Whether a whole socket is of this type and protocol. */
static bool dtrace_sock_is(const struct sock *sk, u16 type, u16 protocol)
{
	u16 has_type, has_protocol;

	return !get_kernel_nofault(has_type, &sk->sk_type) && has_type == type &&
	       !get_kernel_nofault(has_protocol, &sk->sk_protocol) && has_protocol == protocol;
}

/* Converts jiffies to milliseconds. jiffies_to_msecs() may be traced itself. */
static u32 dtrace_msecs(u32 ticks)
{
	return (u64)ticks * MSEC_PER_SEC / HZ;
}

/*
 * Describes an end of a connection; false: the socket belongs to none, such as the one by which the
 * kernel sends resets.
 */
bool dtrace_tcp_of(const struct sock *sk, struct dtrace_tcp *out)
{
	int state;
	bool whole;
	u32 rto;

	*out = (struct dtrace_tcp) { .state = TCP_CLOSE };
	if (!dtrace_sock_of(sk, &state, &whole) || (whole && !dtrace_sock_is(sk, SOCK_STREAM, IPPROTO_TCP)))
		return false;
	*out = (struct dtrace_tcp) { .sk = sk, .whole = whole ? sk : NULL, .state = state };
	if (whole && !get_kernel_nofault(rto, &inet_csk(sk)->icsk_rto))
		out->rto = dtrace_msecs(rto);
	return true;
}

/*
 * Whether the segment that is being sent takes up sequence space and was sent before: snd_nxt moves
 * after the segment is sent, and never back. With Fast Open a connection sends the answer to the
 * peer's request once, when snd_nxt is beyond it already.
 */
bool dtrace_tcp_resends(const struct dtrace_tcp *tcp, const struct dtrace_packet *packet)
{
	const struct request_sock *request;
	struct tcphdr header;
	u32 next;

	if (!tcp->whole || get_kernel_nofault(header, (const struct tcphdr *)packet->transport) ||
	    get_kernel_nofault(next, &tcp_sk(tcp->whole)->snd_nxt) ||
	    get_kernel_nofault(request, (const struct request_sock *const *)&tcp_sk(tcp->whole)->fastopen_rsk))
		return false;
	if (header.syn ? request != NULL : !header.fin && packet->ip.plength <= header.doff * 4)
		return false;
	return before(ntohl(header.seq), next);
}

/* These return what a TCP header says; 0 if it cannot be read. */
u8 dtrace_tcp_flags(const void *header)
{
	struct tcphdr tcp;

	return get_kernel_nofault(tcp, header) ? 0 : tcp_flag_byte(&tcp);
}

u32 dtrace_tcp_seq(const void *header)
{
	struct tcphdr tcp;

	return get_kernel_nofault(tcp, header) ? 0 : ntohl(tcp.seq);
}

/*
 * Whether the end that reports to BPF by `op` that its connection is established has requested the
 * connection. If both ends have requested it, both report what an end reports that was requested.
 * But the connection of such an end is not accepted yet, so it belongs to no program; at most it is
 * one of MPTCP, whose `socket` belongs to another connection as well.
 */
bool dtrace_tcp_was_active(const struct sock *sk, int op)
{
	const struct socket *socket;
	const struct sock *owner;

	if (op == BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB)
		return true;
	return !get_kernel_nofault(socket, (const struct socket *const *)&sk->sk_socket) && socket &&
	       !get_kernel_nofault(owner, (const struct sock *const *)&socket->sk) && owner == sk;
}

/* Whether a connection without a socket has received all of the peer's data. */
bool dtrace_tcp_waits(const struct sock *tw)
{
	unsigned char substate;

	return !get_kernel_nofault(substate, (const unsigned char *)&inet_twsk(tw)->tw_substate) &&
	       substate == TCP_TIME_WAIT;
}

/*
 * Whether this is the peer's last segment, for a connection without a socket that has not received
 * it yet.
 */
bool dtrace_tcp_ends(const struct sock *tw, const struct sk_buff *skb)
{
	const u8 mask = TCPHDR_FIN | TCPHDR_SYN | TCPHDR_RST | TCPHDR_ACK;
	struct tcp_skb_cb segment;
	unsigned char substate;
	u32 next;

	return !get_kernel_nofault(segment, TCP_SKB_CB(skb)) &&
	       !get_kernel_nofault(substate, (const unsigned char *)&inet_twsk(tw)->tw_substate) &&
	       !get_kernel_nofault(next, &tcp_twsk(tw)->tw_rcv_nxt) && substate == TCP_FIN_WAIT2 &&
	       (segment.tcp_flags & mask) == (TCPHDR_FIN | TCPHDR_ACK) && segment.end_seq == next + 1;
}

/* Returns the socket if it is one of UDP; otherwise NULL. */
const struct sock *dtrace_udp_of(const struct sock *sk)
{
	int state;
	bool whole;

	return dtrace_sock_of(sk, &state, &whole) && whole && dtrace_sock_is(sk, SOCK_DGRAM, IPPROTO_UDP) ? sk : NULL;
}
