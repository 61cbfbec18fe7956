/*
 * SPDX-License-Identifier: MIT OR Apache-2.0
 * SPDX-FileCopyrightText: The DTrace for Linux authors
 *
 * Network and link-layer addresses: the types and constants for inet_ntoa(), inet_ntop() and
 * link_ntop().
 */

typedef uint32_t ipaddr_t;
typedef struct in6_addr in6_addr_t;

inline int AF_UNSPEC = 0;
inline int AF_UNIX = 1;
inline int AF_LOCAL = 1;
inline int AF_INET = 2;
inline int AF_AX25 = 3;
inline int AF_IPX = 4;
inline int AF_APPLETALK = 5;
inline int AF_X25 = 9;
inline int AF_INET6 = 10;
inline int AF_KEY = 15;
inline int AF_NETLINK = 16;
inline int AF_PACKET = 17;
inline int AF_RDS = 21;
inline int AF_PPPOX = 24;
inline int AF_CAN = 29;
inline int AF_TIPC = 30;
inline int AF_BLUETOOTH = 31;
inline int AF_ALG = 38;
inline int AF_VSOCK = 40;
inline int AF_QIPCRTR = 42;
inline int AF_SMC = 43;
inline int AF_XDP = 44;

inline int ARPHRD_ETHER = 1;
inline int ARPHRD_INFINIBAND = 32;
inline int ARPHRD_PPP = 512;
inline int ARPHRD_TUNNEL = 768;
inline int ARPHRD_TUNNEL6 = 769;
inline int ARPHRD_LOOPBACK = 772;
inline int ARPHRD_SIT = 776;
inline int ARPHRD_IPGRE = 778;
inline int ARPHRD_NETLINK = 824;
inline int ARPHRD_NONE = 0xfffe;
inline int ARPHRD_VOID = 0xffff;
