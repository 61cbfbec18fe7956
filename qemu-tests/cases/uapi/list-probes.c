// SPDX-License-Identifier: MIT OR Apache-2.0
// SPDX-FileCopyrightText: The DTrace for Linux authors

/*
 * Uses the device from C, with nothing but the header: lists the providers, then the probes that a
 * glob matches.
 * Usage: list-probes PROVIDER NAME
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <linux/dtrace.h>

static int fail(const char *what)
{
	perror(what);
	return 1;
}

/* Walks all probes; prints each provider when it is first seen. */
static int providers(int fd)
{
	struct dtrace_probedesc probe = { 0 };
	char seen[32][DTRACE_PROVNAMELEN];
	int n = 0, i;

	while (!ioctl(fd, DTRACEIOC_PROBES, &probe)) {
		for (i = 0; i < n && strcmp(seen[i], (char *)probe.provider); i++)
			;
		if (i == n && n < 32) {
			struct dtrace_providerdesc provider = { 0 };

			memcpy(seen[n++], probe.provider, sizeof(probe.provider));
			memcpy(provider.name, probe.provider, sizeof(provider.name));
			if (ioctl(fd, DTRACEIOC_PROVIDER, &provider))
				return fail("DTRACEIOC_PROVIDER");
			printf("provider %s\n", (char *)provider.name);
		}
	}
	return errno == ESRCH ? 0 : fail("DTRACEIOC_PROBES");
}

static int matches(int fd, const char *provider, const char *name)
{
	struct dtrace_probedesc probe;
	uint32_t id = 0;

	for (;;) {
		memset(&probe, 0, sizeof(probe));
		probe.id = id;
		strncpy((char *)probe.provider, provider, sizeof(probe.provider) - 1);
		strncpy((char *)probe.name, name, sizeof(probe.name) - 1);
		if (ioctl(fd, DTRACEIOC_PROBEMATCH, &probe))
			return errno == ESRCH ? 0 : fail("DTRACEIOC_PROBEMATCH");
		if (probe.id <= id) {
			fprintf(stderr, "probe ids do not grow\n");
			return 1;
		}
		id = probe.id;
		printf("probe %s:%s:%s:%s\n", probe.provider, probe.module, probe.func, probe.name);
	}
}

int main(int argc, char **argv)
{
	struct dtrace_conf conf;
	int fd;

	if (argc != 3) {
		fprintf(stderr, "usage: list-probes PROVIDER NAME\n");
		return 2;
	}
	fd = open("/dev/dtrace", O_RDWR);
	if (fd < 0)
		return fail("/dev/dtrace");
	if (ioctl(fd, DTRACEIOC_CONF, &conf))
		return fail("DTRACEIOC_CONF");
	if (conf.difversion != DIF_VERSION || conf.difintregs != DIF_NREGS || conf.diftupregs != DIF_NTREGS) {
		fprintf(stderr, "another DIF\n");
		return 1;
	}
	return providers(fd) || matches(fd, argv[1], argv[2]);
}
