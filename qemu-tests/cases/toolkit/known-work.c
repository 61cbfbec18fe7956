// SPDX-License-Identifier: MIT OR Apache-2.0
// SPDX-FileCopyrightText: The DTrace for Linux authors

/*
 * known-work KIND [DIRECTORY]: activity with known numbers, against which a script's output is
 * checked.
 *
 * files: writes DIRECTORY/data, 8 times 512 bytes; seeks to 0, reads 4 times 1,024 bytes; opens it
 *   10 times more, for reading; fails 5 times to open DIRECTORY/missing; queries 6 times the status
 *   of data and 3 times that of missing.
 * names: creates, renames and removes 4 files in DIRECTORY.
 * processes: 3 children execute /bin/true with the argument `child`, one exits with 7, one is
 *   killed by SIGTERM.
 * threads: 4 threads, one after the other.
 * signals: sends itself SIGUSR1 7 times and SIGUSR2 twice, and catches them.
 * calls: getppid() 500 times, and close(-1) 20 times.
 * sleep: sleeps 5 times for 20 ms.
 * spin: computes until the process has used 0.3 s.
 * talk: a connection to port 4321 of the loopback device; 10 messages of 100 bytes, answered by
 *   one of 3,000.
 */

#include <arpa/inet.h>
#include <err.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const char *directory = "/tmp";

static const char *in_directory(const char *name)
{
	static char paths[2][256];
	static int turn;

	turn = !turn;
	snprintf(paths[turn], sizeof(paths[turn]), "%s/%s", directory, name);
	return paths[turn];
}

static void files(void)
{
	char bytes[1024] = "";
	const char *data = in_directory("data"), *missing = in_directory("missing");
	struct stat status;
	int fd, i;

	fd = open(data, O_CREAT | O_TRUNC | O_RDWR, 0644);
	if (fd < 0)
		err(1, "%s", data);
	for (i = 0; i < 8; i++)
		if (write(fd, bytes, 512) != 512)
			err(1, "write");
	if (lseek(fd, 0, SEEK_SET))
		err(1, "lseek");
	for (i = 0; i < 4; i++)
		if (read(fd, bytes, 1024) != 1024)
			err(1, "read");
	close(fd);
	for (i = 0; i < 10; i++)
		close(open(data, O_RDONLY));
	for (i = 0; i < 5; i++)
		if (open(missing, O_RDONLY) >= 0)
			errx(1, "%s is there", missing);
	for (i = 0; i < 6; i++)
		if (stat(data, &status))
			err(1, "%s", data);
	for (i = 0; i < 3; i++)
		if (!stat(missing, &status))
			errx(1, "%s is there", missing);
}

static void names(void)
{
	const char *from = in_directory("made"), *to = in_directory("renamed");
	int i;

	for (i = 0; i < 4; i++) {
		close(open(from, O_CREAT | O_WRONLY, 0600));
		if (rename(from, to) || unlink(to))
			err(1, "%s", from);
	}
}

static void child(void (*work)(void))
{
	pid_t pid = fork();

	if (pid < 0)
		err(1, "fork");
	if (!pid) {
		work();
		_exit(1);
	}
	waitpid(pid, NULL, 0);
}

static void execute(void)
{
	execl("/bin/true", "true", "child", NULL);
}

static void leave(void)
{
	_exit(7);
}

static void die(void)
{
	raise(SIGTERM);
}

static void processes(void)
{
	int i;

	for (i = 0; i < 3; i++)
		child(execute);
	child(leave);
	child(die);
}

static void *nothing(void *unused)
{
	return unused;
}

static void threads(void)
{
	pthread_t thread;
	int i;

	for (i = 0; i < 4; i++)
		if (pthread_create(&thread, NULL, nothing, NULL) || pthread_join(thread, NULL))
			errx(1, "thread");
}

static void caught(int signal)
{
	(void)signal;
}

static void signals(void)
{
	int i;

	signal(SIGUSR1, caught);
	signal(SIGUSR2, caught);
	for (i = 0; i < 9; i++)
		kill(getpid(), i < 7 ? SIGUSR1 : SIGUSR2);
}

static void calls(void)
{
	int i;

	for (i = 0; i < 500; i++)
		getppid();
	for (i = 0; i < 20; i++)
		close(-1);
}

static void sleeps(void)
{
	const struct timespec time = { .tv_nsec = 20000000 };
	int i;

	for (i = 0; i < 5; i++)
		nanosleep(&time, NULL);
}

static void spin(void)
{
	volatile int i;

	while (clock() < CLOCKS_PER_SEC * 3 / 10)
		for (i = 0; i < 100000; i++)
			;
}

static void receive(int fd, size_t size)
{
	char bytes[3000];

	if (recv(fd, bytes, size, MSG_WAITALL) != (ssize_t)size)
		err(1, "recv");
}

static void say(int fd, size_t size)
{
	char bytes[3000] = "";

	if (send(fd, bytes, size, 0) != (ssize_t)size)
		err(1, "send");
}

static void talk(void)
{
	struct sockaddr_in address = {
		.sin_family = AF_INET,
		.sin_port = htons(4321),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	int listener = socket(AF_INET, SOCK_STREAM, 0), client = socket(AF_INET, SOCK_STREAM, 0);
	int server, one = 1, i;

	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(listener, (void *)&address, sizeof(address)) || listen(listener, 1))
		err(1, "listen");
	if (connect(client, (void *)&address, sizeof(address)))
		err(1, "connect");
	server = accept(listener, NULL, NULL);
	for (i = 0; i < 10; i++) {
		say(client, 100);
		receive(server, 100);
	}
	say(server, 3000);
	receive(client, 3000);
	close(client);
	close(server);
}

static const struct {
	const char *name;
	void (*work)(void);
} kinds[] = {
	{ "files", files }, { "names", names },	  { "processes", processes },
	{ "calls", calls }, { "threads", threads }, { "signals", signals },
	{ "sleep", sleeps }, { "spin", spin },	  { "talk", talk },
};

int main(int argc, char **argv)
{
	size_t i;

	if (argc > 2)
		directory = argv[2];
	for (i = 0; argc > 1 && i < sizeof(kinds) / sizeof(*kinds); i++)
		if (!strcmp(argv[1], kinds[i].name)) {
			kinds[i].work();
			return 0;
		}
	errx(2, "usage: known-work KIND [DIRECTORY]");
}
