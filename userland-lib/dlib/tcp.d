/*
 * SPDX-License-Identifier: MIT OR Apache-2.0
 * SPDX-FileCopyrightText: The DTrace for Linux authors
 *
 * Segments and connections of TCP, as the provider tcp passes them.
 */

#pragma D depends_on library ip.d

/* Bits of tcp_flags. */
inline uint8_t TH_FIN = 0x01;
inline uint8_t TH_SYN = 0x02;
inline uint8_t TH_RST = 0x04;
inline uint8_t TH_PUSH = 0x08;
inline uint8_t TH_ACK = 0x10;
inline uint8_t TH_URG = 0x20;
inline uint8_t TH_ECE = 0x40;
inline uint8_t TH_CWR = 0x80;

/* Values of tcps_state. */
inline int TCP_STATE_ESTABLISHED = 1;
inline int TCP_STATE_SYN_SENT = 2;
inline int TCP_STATE_SYN_RECEIVED = 3;
inline int TCP_STATE_FIN_WAIT_1 = 4;
inline int TCP_STATE_FIN_WAIT_2 = 5;
inline int TCP_STATE_TIME_WAIT = 6;
inline int TCP_STATE_CLOSED = 7;
inline int TCP_STATE_CLOSE_WAIT = 8;
inline int TCP_STATE_LAST_ACK = 9;
inline int TCP_STATE_LISTEN = 10;
inline int TCP_STATE_CLOSING = 11;
/*
 * States of other systems. No connection has these values: on Linux such a connection is in state
 * CLOSED.
 */
inline int TCP_STATE_IDLE = -5;
inline int TCP_STATE_BOUND = -4;

/* The name of a state. */
inline string tcp_state_string[int32_t state] =
    state == TCP_STATE_ESTABLISHED ? "state-established" :
    state == TCP_STATE_SYN_SENT ? "state-syn-sent" :
    state == TCP_STATE_SYN_RECEIVED ? "state-syn-received" :
    state == TCP_STATE_FIN_WAIT_1 ? "state-fin-wait-1" :
    state == TCP_STATE_FIN_WAIT_2 ? "state-fin-wait-2" :
    state == TCP_STATE_TIME_WAIT ? "state-time-wait" :
    state == TCP_STATE_CLOSED ? "state-closed" :
    state == TCP_STATE_CLOSE_WAIT ? "state-close-wait" :
    state == TCP_STATE_LAST_ACK ? "state-last-ack" :
    state == TCP_STATE_LISTEN ? "state-listen" :
    state == TCP_STATE_CLOSING ? "state-closing" :
    state == TCP_STATE_IDLE ? "state-idle" :
    state == TCP_STATE_BOUND ? "state-bound" : "<unknown>";

/* The header of a segment. */
typedef struct tcpinfo {
	uint16_t tcp_sport;		/* source port */
	uint16_t tcp_dport;		/* destination port */
	uint32_t tcp_seq;		/* sequence number */
	uint32_t tcp_ack;		/* acknowledged sequence number */
	uint8_t tcp_offset;		/* size of the header, bytes */
	uint8_t tcp_flags;		/* TH_SYN, TH_ACK, ... */
	uint16_t tcp_window;		/* window */
	uint16_t tcp_checksum;		/* checksum */
	uint16_t tcp_urgent;		/* urgent pointer */
	struct tcphdr *tcp_hdr;		/* the header itself */
} tcpinfo_t;

/* The flags are byte 13. */
translator tcpinfo_t < struct tcphdr *T > {
	tcp_sport = T == NULL ? 0 : ntohs(T->source);
	tcp_dport = T == NULL ? 0 : ntohs(T->dest);
	tcp_seq = T == NULL ? 0 : ntohl(T->seq);
	tcp_ack = T == NULL ? 0 : ntohl(T->ack_seq);
	tcp_offset = T == NULL ? 0 : T->doff << 2;
	tcp_flags = T == NULL ? 0 : ((uint8_t *)T)[13];
	tcp_window = T == NULL ? 0 : ntohs(T->window);
	tcp_checksum = T == NULL ? 0 : ntohs(T->check);
	tcp_urgent = T == NULL ? 0 : ntohs(T->urg_ptr);
	tcp_hdr = T;
};

/* A connection. */
typedef struct tcpsinfo {
	uintptr_t tcps_addr;		/* address of the tcp_sock */
	int tcps_local;			/* 1 if local and remote address are the same */
	int tcps_active;		/* not known: -1 */
	uint16_t tcps_lport;		/* local port */
	uint16_t tcps_rport;		/* remote port */
	string tcps_laddr;		/* local address */
	string tcps_raddr;		/* remote address */
	int32_t tcps_state;		/* TCP_STATE_... */
	uint32_t tcps_iss;		/* not known: 0 */
	uint32_t tcps_suna;		/* first sequence number not acknowledged */
	uint32_t tcps_smax;		/* end of the sent data */
	uint32_t tcps_snxt;		/* next sequence number to send */
	uint32_t tcps_rack;		/* acknowledged to the remote end */
	uint32_t tcps_rnxt;		/* next sequence number to receive */
	uint32_t tcps_swnd;		/* send window */
	int32_t tcps_snd_ws;		/* its scale */
	uint32_t tcps_rwnd;		/* receive window */
	int32_t tcps_rcv_ws;		/* its scale */
	uint32_t tcps_cwnd;		/* congestion window, bytes */
	uint32_t tcps_cwnd_ssthresh;	/* slow start threshold, bytes */
	uint32_t tcps_sack_fack;	/* not known: 0 */
	uint32_t tcps_sack_snxt;	/* not known: 0 */
	uint32_t tcps_rto;		/* retransmission timeout; args[3]: milliseconds */
	uint32_t tcps_mss;		/* maximum segment size */
	int tcps_retransmit;		/* send: 1 if the segment was sent before */
} tcpsinfo_t;

/*
 * The kernel keeps tcps_rto in jiffies, which this translator does not convert; in args[3] it is in
 * milliseconds. A socket does not tell which segment is sent, so tcps_retransmit is 0.
 */
translator tcpsinfo_t < struct tcp_sock *T > {
	tcps_addr = (uintptr_t)T;
	tcps_local = T == NULL ? 0 :
	    ((struct sock *)T)->__sk_common.skc_family != AF_INET6 ?
	    ((struct sock *)T)->__sk_common.skc_daddr == ((struct sock *)T)->__sk_common.skc_rcv_saddr :
	    ((uint64_t *)&((struct sock *)T)->__sk_common.skc_v6_daddr)[0] ==
	    ((uint64_t *)&((struct sock *)T)->__sk_common.skc_v6_rcv_saddr)[0] &&
	    ((uint64_t *)&((struct sock *)T)->__sk_common.skc_v6_daddr)[1] ==
	    ((uint64_t *)&((struct sock *)T)->__sk_common.skc_v6_rcv_saddr)[1];
	tcps_active = -1;
	tcps_lport = T == NULL ? 0 : ((struct sock *)T)->__sk_common.skc_num;
	tcps_rport = T == NULL ? 0 : ntohs(((struct sock *)T)->__sk_common.skc_dport);
	tcps_laddr = T == NULL ? "<unknown>" :
	    ((struct sock *)T)->__sk_common.skc_family == AF_INET6 ?
	    inet_ntoa6(&((struct sock *)T)->__sk_common.skc_v6_rcv_saddr) :
	    inet_ntoa(&((struct sock *)T)->__sk_common.skc_rcv_saddr);
	tcps_raddr = T == NULL ? "<unknown>" :
	    ((struct sock *)T)->__sk_common.skc_family == AF_INET6 ?
	    inet_ntoa6(&((struct sock *)T)->__sk_common.skc_v6_daddr) :
	    inet_ntoa(&((struct sock *)T)->__sk_common.skc_daddr);
	tcps_state = T == NULL ? TCP_STATE_CLOSED : ((struct sock *)T)->__sk_common.skc_state;
	tcps_iss = 0;
	tcps_suna = T == NULL ? 0 : T->snd_una;
	/*
	 * Linux never moves snd_nxt back, so it is the end of the sent data as well. Data that a
	 * program has written but that was not sent ends at write_seq.
	 */
	tcps_smax = T == NULL ? 0 : T->snd_nxt;
	tcps_snxt = T == NULL ? 0 : T->snd_nxt;
	tcps_rack = T == NULL ? 0 : T->rcv_wup;
	tcps_rnxt = T == NULL ? 0 : T->rcv_nxt;
	tcps_swnd = T == NULL ? 0 : T->snd_wnd;
	tcps_snd_ws = T == NULL ? 0 : T->rx_opt.snd_wscale;
	tcps_rwnd = T == NULL ? 0 : T->rcv_wnd;
	tcps_rcv_ws = T == NULL ? 0 : T->rx_opt.rcv_wscale;
	tcps_cwnd = T == NULL ? 0 : T->snd_cwnd * T->mss_cache;
	tcps_cwnd_ssthresh = T == NULL ? 0 : T->snd_ssthresh * T->mss_cache;
	tcps_sack_fack = 0;
	tcps_sack_snxt = 0;
	tcps_rto = T == NULL ? 0 : ((struct inet_connection_sock *)T)->icsk_rto;
	tcps_mss = T == NULL ? 0 : T->mss_cache;
	tcps_retransmit = 0;
};

/*
 * One end of a connection as the provider passes it. kmod/helpers/net.h has the same layout.
 * Through the first pointer only the part that all kinds of sockets share (struct sock_common) may
 * be read; through the second one, if it is not NULL, the whole socket.
 */
typedef struct dtrace_tcp {
	struct tcp_sock *tcp_any;
	struct tcp_sock *tcp_whole;
	int tcp_now;
	int tcp_resends;
	uint32_t tcp_rto;
} dtrace_tcp_t;

/* 12 and 13 are the kernel's internal states TCP_NEW_SYN_RECV and TCP_BOUND_INACTIVE. */
translator tcpsinfo_t < dtrace_tcp_t *T > {
	tcps_addr = xlate <tcpsinfo_t> (T->tcp_any).tcps_addr;
	tcps_local = xlate <tcpsinfo_t> (T->tcp_any).tcps_local;
	tcps_active = xlate <tcpsinfo_t> (T->tcp_any).tcps_active;
	/* A socket that has released its port while closing still has it in inet_sport. */
	tcps_lport = T->tcp_whole != NULL && ((struct inet_sock *)T->tcp_whole)->inet_sport != 0 ?
	    ntohs(((struct inet_sock *)T->tcp_whole)->inet_sport) : xlate <tcpsinfo_t> (T->tcp_any).tcps_lport;
	tcps_rport = xlate <tcpsinfo_t> (T->tcp_any).tcps_rport;
	tcps_laddr = xlate <tcpsinfo_t> (T->tcp_any).tcps_laddr;
	tcps_raddr = xlate <tcpsinfo_t> (T->tcp_any).tcps_raddr;
	tcps_state = T->tcp_now == 12 ? TCP_STATE_SYN_RECEIVED : T->tcp_now == 13 ? TCP_STATE_CLOSED : T->tcp_now;
	tcps_iss = xlate <tcpsinfo_t> (T->tcp_whole).tcps_iss;
	tcps_suna = xlate <tcpsinfo_t> (T->tcp_whole).tcps_suna;
	tcps_smax = xlate <tcpsinfo_t> (T->tcp_whole).tcps_smax;
	tcps_snxt = xlate <tcpsinfo_t> (T->tcp_whole).tcps_snxt;
	tcps_rack = xlate <tcpsinfo_t> (T->tcp_whole).tcps_rack;
	tcps_rnxt = xlate <tcpsinfo_t> (T->tcp_whole).tcps_rnxt;
	tcps_swnd = xlate <tcpsinfo_t> (T->tcp_whole).tcps_swnd;
	tcps_snd_ws = xlate <tcpsinfo_t> (T->tcp_whole).tcps_snd_ws;
	tcps_rwnd = xlate <tcpsinfo_t> (T->tcp_whole).tcps_rwnd;
	tcps_rcv_ws = xlate <tcpsinfo_t> (T->tcp_whole).tcps_rcv_ws;
	tcps_cwnd = xlate <tcpsinfo_t> (T->tcp_whole).tcps_cwnd;
	tcps_cwnd_ssthresh = xlate <tcpsinfo_t> (T->tcp_whole).tcps_cwnd_ssthresh;
	tcps_sack_fack = xlate <tcpsinfo_t> (T->tcp_whole).tcps_sack_fack;
	tcps_sack_snxt = xlate <tcpsinfo_t> (T->tcp_whole).tcps_sack_snxt;
	tcps_rto = T->tcp_rto;
	tcps_mss = xlate <tcpsinfo_t> (T->tcp_whole).tcps_mss;
	tcps_retransmit = T->tcp_resends;
};

/* The previous state of a connection. */
typedef struct tcplsinfo {
	int32_t tcps_state;		/* TCP_STATE_... */
} tcplsinfo_t;

translator tcplsinfo_t < int I > {
	tcps_state = I;
};
