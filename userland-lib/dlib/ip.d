/*
 * SPDX-License-Identifier: MIT OR Apache-2.0
 * SPDX-FileCopyrightText: The DTrace for Linux authors
 *
 * Packets of the internet protocol, as the provider ip passes them.
 */

#pragma D depends_on library net.d
#pragma D depends_on library unistd.d

inline int IPPROTO_IP = 0;
inline int IPPROTO_HOPOPTS = 0;
inline int IPPROTO_ICMP = 1;
inline int IPPROTO_IGMP = 2;
inline int IPPROTO_IPIP = 4;
inline int IPPROTO_TCP = 6;
inline int IPPROTO_EGP = 8;
inline int IPPROTO_UDP = 17;
inline int IPPROTO_IPV6 = 41;
inline int IPPROTO_ROUTING = 43;
inline int IPPROTO_FRAGMENT = 44;
inline int IPPROTO_RSVP = 46;
inline int IPPROTO_GRE = 47;
inline int IPPROTO_ESP = 50;
inline int IPPROTO_AH = 51;
inline int IPPROTO_ICMPV6 = 58;
inline int IPPROTO_NONE = 59;
inline int IPPROTO_DSTOPTS = 60;
inline int IPPROTO_OSPF = 89;
inline int IPPROTO_PIM = 103;
inline int IPPROTO_SCTP = 132;
inline int IPPROTO_RAW = 255;

/* The memory of a packet. */
typedef struct pktinfo {
	uintptr_t pkt_addr;	/* address of the sk_buff */
} pktinfo_t;

translator pktinfo_t < struct sk_buff *S > {
	pkt_addr = (uintptr_t)S;
};

/* The connection that a packet belongs to. */
typedef struct csinfo {
	uintptr_t cs_addr;	/* address of the sock */
	uint64_t cs_cid;	/* the same, as ID of the connection */
	pid_t cs_pid;		/* not known: -1 */
} csinfo_t;

translator csinfo_t < struct sock *S > {
	cs_addr = (uintptr_t)S;
	cs_cid = (uint64_t)S;
	cs_pid = -1;
};

/* The information that packets of all versions of the protocol have. */
typedef struct ipinfo {
	uint8_t ip_ver;		/* 4 or 6 */
	uint32_t ip_plength;	/* bytes after the header */
	string ip_saddr;	/* source address */
	string ip_daddr;	/* destination address */
} ipinfo_t;

/* A packet as the providers ip, tcp and udp pass it. kmod/helpers/net.h has the same layout. */
typedef struct dtrace_ip {
	void *ip_header;
	void *ip_source;
	void *ip_destination;
	uint32_t ip_bytes;
	uint8_t ip_version;
} dtrace_ip_t;

translator ipinfo_t < dtrace_ip_t *I > {
	ip_ver = I == NULL ? 0 : I->ip_version;
	ip_plength = I == NULL ? 0 : I->ip_bytes;
	ip_saddr = I == NULL ? "<unknown>" :
	    I->ip_version == 4 ? inet_ntoa((ipaddr_t *)I->ip_source) : inet_ntoa6((in6_addr_t *)I->ip_source);
	ip_daddr = I == NULL ? "<unknown>" :
	    I->ip_version == 4 ? inet_ntoa((ipaddr_t *)I->ip_destination) :
	    inet_ntoa6((in6_addr_t *)I->ip_destination);
};

translator ipinfo_t < struct iphdr *I > {
	ip_ver = I == NULL ? 0 : I->version;
	ip_plength = I == NULL ? 0 : ntohs(I->tot_len) - (I->ihl << 2);
	ip_saddr = I == NULL ? "<unknown>" : inet_ntoa(&I->saddr);
	ip_daddr = I == NULL ? "<unknown>" : inet_ntoa(&I->daddr);
};

translator ipinfo_t < struct ipv6hdr *I > {
	ip_ver = I == NULL ? 0 : I->version;
	ip_plength = I == NULL ? 0 : ntohs(I->payload_len);
	ip_saddr = I == NULL ? "<unknown>" : inet_ntoa6(&I->saddr);
	ip_daddr = I == NULL ? "<unknown>" : inet_ntoa6(&I->daddr);
};

/* The interface that a packet passes through. */
typedef struct ifinfo {
	string if_name;		/* name */
	int8_t if_local;	/* 1 for the loopback interface */
	int if_ipstack;		/* number of its network namespace */
	uintptr_t if_addr;	/* address of the net_device */
} ifinfo_t;

/* IFF_LOOPBACK is 8. */
translator ifinfo_t < struct net_device *N > {
	if_name = N == NULL ? "<null>" : stringof(N->name);
	if_local = N == NULL ? 0 : (N->flags & 8) != 0;
	if_ipstack = N == NULL ? 0 : N->nd_net.net->ns.inum;
	if_addr = (uintptr_t)N;
};

/* A header of IP version 4. */
typedef struct ipv4info {
	uint8_t ipv4_ver;		/* 4 */
	uint8_t ipv4_ihl;		/* size of the header, bytes */
	uint8_t ipv4_tos;		/* type of service */
	uint16_t ipv4_length;		/* size of the packet, bytes */
	uint16_t ipv4_ident;		/* identification */
	uint8_t ipv4_flags;		/* flags of fragments: IPV4_DF, IPV4_MF */
	uint16_t ipv4_offset;		/* offset of a fragment, bytes */
	uint8_t ipv4_ttl;		/* time to live */
	uint8_t ipv4_protocol;		/* the next protocol */
	string ipv4_protostr;		/* the same as text */
	uint16_t ipv4_checksum;		/* checksum */
	ipaddr_t ipv4_src;		/* source address */
	ipaddr_t ipv4_dst;		/* destination address */
	string ipv4_saddr;		/* source address as text */
	string ipv4_daddr;		/* destination address as text */
	struct iphdr *ipv4_hdr;		/* the header itself */
} ipv4info_t;

inline uint8_t IPV4_DF = 4;
inline uint8_t IPV4_MF = 2;
/* Other names of these constants. */
inline uint8_t IPH_DF = 4;
inline uint8_t IPH_MF = 2;

translator ipv4info_t < struct iphdr *I > {
	ipv4_ver = I == NULL ? 0 : I->version;
	ipv4_ihl = I == NULL ? 0 : I->ihl << 2;
	ipv4_tos = I == NULL ? 0 : I->tos;
	ipv4_length = I == NULL ? 0 : ntohs(I->tot_len);
	ipv4_ident = I == NULL ? 0 : ntohs(I->id);
	ipv4_flags = I == NULL ? 0 : (ntohs(I->frag_off) & 0xe000) >> 12;
	ipv4_offset = I == NULL ? 0 : (ntohs(I->frag_off) & 0x1fff) << 3;
	ipv4_ttl = I == NULL ? 0 : I->ttl;
	ipv4_protocol = I == NULL ? 0 : I->protocol;
	ipv4_protostr = I == NULL ? "<null>" :
	    I->protocol == IPPROTO_TCP ? "TCP" : I->protocol == IPPROTO_UDP ? "UDP" :
	    I->protocol == IPPROTO_ICMP ? "ICMP" : I->protocol == IPPROTO_IGMP ? "IGMP" :
	    I->protocol == IPPROTO_IPIP ? "IP" : I->protocol == IPPROTO_IPV6 ? "IPV6" :
	    I->protocol == IPPROTO_GRE ? "GRE" : I->protocol == IPPROTO_ESP ? "ESP" :
	    I->protocol == IPPROTO_AH ? "AH" : I->protocol == IPPROTO_SCTP ? "SCTP" :
	    lltostr((uint64_t)I->protocol);
	ipv4_checksum = I == NULL ? 0 : ntohs(I->check);
	ipv4_src = I == NULL ? 0 : I->saddr;
	ipv4_dst = I == NULL ? 0 : I->daddr;
	ipv4_saddr = I == NULL ? "<null>" : inet_ntoa(&I->saddr);
	ipv4_daddr = I == NULL ? "<null>" : inet_ntoa(&I->daddr);
	ipv4_hdr = I;
};

/* A header of IP version 6. */
typedef struct ipv6info {
	uint8_t ipv6_ver;		/* 6 */
	uint8_t ipv6_tclass;		/* traffic class */
	uint32_t ipv6_flow;		/* flow label */
	uint16_t ipv6_plen;		/* bytes after the header */
	uint8_t ipv6_nexthdr;		/* the next protocol */
	string ipv6_nextstr;		/* the same as text */
	uint8_t ipv6_hlim;		/* hop limit */
	in6_addr_t *ipv6_src;		/* source address */
	in6_addr_t *ipv6_dst;		/* destination address */
	string ipv6_saddr;		/* source address as text */
	string ipv6_daddr;		/* destination address as text */
	struct ipv6hdr *ipv6_hdr;	/* the header itself */
} ipv6info_t;

translator ipv6info_t < struct ipv6hdr *I > {
	ipv6_ver = I == NULL ? 0 : I->version;
	ipv6_tclass = I == NULL ? 0 : (I->priority << 4) | (I->flow_lbl[0] >> 4);
	ipv6_flow = I == NULL ? 0 :
	    ((I->flow_lbl[0] & 0xf) << 16) | (I->flow_lbl[1] << 8) | I->flow_lbl[2];
	ipv6_plen = I == NULL ? 0 : ntohs(I->payload_len);
	ipv6_nexthdr = I == NULL ? 0 : I->nexthdr;
	ipv6_nextstr = I == NULL ? "<null>" :
	    I->nexthdr == IPPROTO_TCP ? "TCP" : I->nexthdr == IPPROTO_UDP ? "UDP" :
	    I->nexthdr == IPPROTO_ICMPV6 ? "ICMPV6" : I->nexthdr == IPPROTO_IPV6 ? "IPV6" :
	    I->nexthdr == IPPROTO_ROUTING ? "ROUTING" : I->nexthdr == IPPROTO_FRAGMENT ? "FRAGMENT" :
	    I->nexthdr == IPPROTO_ESP ? "ESP" : I->nexthdr == IPPROTO_AH ? "AH" :
	    I->nexthdr == IPPROTO_NONE ? "NONE" : I->nexthdr == IPPROTO_DSTOPTS ? "DSTOPTS" :
	    lltostr((uint64_t)I->nexthdr);
	ipv6_hlim = I == NULL ? 0 : I->hop_limit;
	ipv6_src = I == NULL ? NULL : &I->saddr;
	ipv6_dst = I == NULL ? NULL : &I->daddr;
	ipv6_saddr = I == NULL ? "<null>" : inet_ntoa6(&I->saddr);
	ipv6_daddr = I == NULL ? "<null>" : inet_ntoa6(&I->daddr);
	ipv6_hdr = I;
};
