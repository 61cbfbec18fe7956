// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

/*
 * net-events tcp|udp 4|6: the life of a connection on the loopback device, and one that is refused; or a datagram. Data is of
 * 2345 bytes. The server's port is 4321, that where nobody listens 4322, the client's 4323 and 4324.
 */

#include <arpa/inet.h>
#include <err.h>
#include <netinet/in.h>
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

int main(int argc, char **argv)
{
	char data[2345] = "";
	int server, client, accepted;

	if (argc != 3)
		errx(2, "usage: net-events tcp|udp 4|6");
	version = atoi(argv[2]);
	if (!strcmp(argv[1], "udp")) {
		server = end(SOCK_DGRAM, 4321);
		client = end(SOCK_DGRAM, 4323);
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
