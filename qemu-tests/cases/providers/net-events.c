// SPDX-License-Identifier: MIT OR Apache-2.0
// SPDX-FileCopyrightText: The DTrace for Linux authors

/*
 * net-events EVENTS 4|6, on the loopback device. Data has 2345 bytes. The server's port is 4321,
 * a port without a listener 4322, the client's 4323 and 4324, that of a socket connected to
 * itself 4325.
 *
 * tcp: the life of a connection, and a refused one.
 * udp: a datagram; options: one after option headers, of version 6.
 * loss: a connection that loses its SYN, its data and its FIN, each for at least 300 ms.
 * again: a connection that the server ends first, twice.
 * crossed: a connection that both ends have requested: a socket's with itself.
 */

#include <arpa/inet.h>
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static int version;

static socklen_t address(struct sockaddr_storage *out, int port)
{
	struct sockaddr_in *v4 = (void *)out;
	struct sockaddr_in6 *v6 = (void *)out;

	memset(out, 0, sizeof(*out));
	if (version == 4) {
		v4->sin_family = AF_INET;
		v4->sin_port = htons(port);
		v4->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
		return sizeof(*v4);
	}
	v6->sin6_family = AF_INET6;
	v6->sin6_port = htons(port);
	v6->sin6_addr = in6addr_loopback;
	return sizeof(*v6);
}

static int end(int type, int port)
{
	int fd = socket(version == 4 ? AF_INET : AF_INET6, type, 0), one = 1;
	struct sockaddr_storage own;
	socklen_t length = address(&own, port);

	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)))
		err(1, "socket");
	if (bind(fd, (void *)&own, length))
		err(1, "bind %d", port);
	return fd;
}

static int to(int fd, int port)
{
	struct sockaddr_storage other;
	socklen_t length = address(&other, port);

	return connect(fd, (void *)&other, length);
}

/* An option header without options, in all packets that the socket sends. */
static void put_between(int fd, int option)
{
	const unsigned char header[8] = { 0, 0, 1, 4 };

	if (setsockopt(fd, IPPROTO_IPV6, option, header, sizeof(header)))
		err(1, "option %d", option);
}

static char data[2345];

/* Makes the socket lose all incoming packets, by a filter that accepts nothing. */
static void deaf(int fd, bool on)
{
	struct sock_filter nothing = BPF_STMT(BPF_RET | BPF_K, 0);
	struct sock_fprog filter = { 1, &nothing };

	if (!on)
		usleep(300000);
	if (setsockopt(fd, SOL_SOCKET, on ? SO_ATTACH_FILTER : SO_DETACH_FILTER, &filter, sizeof(filter)))
		err(1, "filter");
}

static void loss(void)
{
	int server = end(SOCK_STREAM, 4321), client = end(SOCK_STREAM, 4323), accepted;
	struct pollfd connected = { client, POLLOUT, 0 };

	if (listen(server, 1) || fcntl(client, F_SETFL, O_NONBLOCK))
		err(1, "listen");
	deaf(server, true);
	if (!to(client, 4321) || errno != EINPROGRESS)
		err(1, "connect");
	deaf(server, false);
	if (poll(&connected, 1, -1) != 1)
		err(1, "poll");
	accepted = accept(server, NULL, NULL);
	deaf(accepted, true);
	if (write(client, data, sizeof(data)) != sizeof(data))
		err(1, "write");
	deaf(accepted, false);
	if (recv(accepted, data, sizeof(data), MSG_WAITALL) != sizeof(data))
		err(1, "read");
	deaf(accepted, true);
	close(client);
	deaf(accepted, false);
	if (read(accepted, data, sizeof(data)))
		err(1, "end");
	close(accepted);
}

/* The same connection again after the server has ended it. */
static void again(void)
{
	int server = end(SOCK_STREAM, 4321), client, accepted, n;

	if (listen(server, 1))
		err(1, "listen");
	for (n = 0; n < 2; n++) {
		client = end(SOCK_STREAM, 4323);
		if (to(client, 4321))
			err(1, "connect");
		accepted = accept(server, NULL, NULL);
		close(accepted);
		if (read(client, data, sizeof(data)))
			err(1, "end");
		close(client);
		usleep(100000);
	}
}

static void crossed(void)
{
	int both = end(SOCK_STREAM, 4325);

	if (to(both, 4325) || write(both, data, sizeof(data)) != sizeof(data))
		err(1, "connect");
	if (recv(both, data, sizeof(data), MSG_WAITALL) != sizeof(data))
		err(1, "read");
	close(both);
}

int main(int argc, char **argv)
{
	static const struct { const char *name; void (*act)(void); } others[] = {
		{ "loss", loss }, { "again", again }, { "crossed", crossed },
	};
	int server, client, accepted;
	size_t n;

	if (argc != 3)
		errx(2, "usage: net-events EVENTS 4|6");
	version = atoi(argv[2]);
	for (n = 0; n < sizeof(others) / sizeof(others[0]); n++) {
		if (!strcmp(argv[1], others[n].name)) {
			others[n].act();
			return 0;
		}
	}
	if (!strcmp(argv[1], "udp") || !strcmp(argv[1], "options")) {
		server = end(SOCK_DGRAM, 4321);
		client = end(SOCK_DGRAM, 4323);
		if (!strcmp(argv[1], "options")) {
			put_between(client, IPV6_HOPOPTS);
			put_between(client, IPV6_DSTOPTS);
		}
		if (to(client, 4321) || write(client, data, sizeof(data)) != sizeof(data))
			err(1, "send");
		if (read(server, data, sizeof(data)) != sizeof(data))
			err(1, "receive");
		return 0;
	}
	server = end(SOCK_STREAM, 4321);
	client = end(SOCK_STREAM, 4323);
	if (listen(server, 1) || to(client, 4321))
		err(1, "connect");
	accepted = accept(server, NULL, NULL);
	if (write(client, data, sizeof(data)) != sizeof(data) || read(accepted, data, sizeof(data)) != sizeof(data))
		err(1, "transfer");
	close(client);
	/* The end of the file. */
	if (read(accepted, data, sizeof(data)))
		err(1, "end");
	close(accepted);
	if (!to(end(SOCK_STREAM, 4324), 4322))
		errx(1, "nobody refuses");
	return 0;
}
