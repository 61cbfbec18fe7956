// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

/*
 * `await [-p PID] REGEX FILE...`: waits until a line of one of the files matches the extended
 * regular expression. Ends with 1 if that process has ended before. A shell's loop of grep(1) and
 * sleep(1) would keep an emulated CPU busy with starting programs.
 */

#include <errno.h>
#include <regex.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static int matches(const regex_t *regex, const char *file)
{
	FILE *in = fopen(file, "r");
	char *line = NULL;
	size_t room = 0;
	int found = 0;

	if (!in)
		return 0;
	while (!found && getline(&line, &room, in) > 0)
		found = !regexec(regex, line, 0, NULL, 0);
	free(line);
	fclose(in);
	return found;
}

int main(int argc, char **argv)
{
	const struct timespec pause = { .tv_nsec = 20 * 1000 * 1000 };
	pid_t process = 0;
	regex_t regex;

	if (getopt(argc, argv, "p:") == 'p')
		process = atoi(optarg);
	argv += optind;
	if (argc - optind < 2 || regcomp(&regex, argv[0], REG_EXTENDED | REG_NEWLINE | REG_NOSUB)) {
		fprintf(stderr, "usage: await [-p PID] REGEX FILE...\n");
		return 2;
	}
	for (;;) {
		int ended = process && kill(process, 0) && errno == ESRCH;

		for (char **file = argv + 1; *file; file++)
			if (matches(&regex, *file))
				return 0;
		if (ended)
			return 1;
		nanosleep(&pause, NULL);
	}
}
