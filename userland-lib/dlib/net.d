/*
 * SPDX-License-Identifier: GPL-2.0-only
 * SPDX-FileCopyrightText: The DTrace for Linux authors
 *
 * Addresses of networks and links: the types and constants that inet_ntoa(), inet_ntop() and link_ntop() are used with.
 */

typedef uint32_t ipaddr_t;
typedef struct in6_addr in6_addr_t;

inline int AF_UNSPEC = 0;
inline int AF_UNIX = 1;
inline int AF_LOCAL = 1;
inline int AF_INET = 2;
inline int AF_INET6 = 10;
inline int AF_NETLINK = 16;
inline int AF_PACKET = 17;

inline int ARPHRD_ETHER = 1;
inline int ARPHRD_INFINIBAND = 32;
inline int ARPHRD_LOOPBACK = 772;
