// SPDX-License-Identifier: MIT OR Apache-2.0
// SPDX-FileCopyrightText: The DTrace for Linux authors

/*
 * Every control call at its limits, with nothing but the header: calls about things that do not
 * exist, calls with too much, and with bad addresses. Usage: calls IMAGE, a DOF image with a
 * printf() of one value in BEGIN and an aggregation in END, bufsize=65536.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <linux/dtrace.h>

#define RECS 16
#define BAD ((void *)8)

static int dev, failures;
static void *image, *read_only;

static void check(bool good, const char *what)
{
	if (good)
		return;
	printf("%s: errno %d\n", what, errno);
	failures++;
}

/* A call that must fail with this errno. */
static void refused(unsigned long call, void *arg, int expected, const char *what)
{
	errno = 0;
	check(ioctl(dev, call, arg) == -1 && errno == expected, what);
}

static void works(unsigned long call, void *arg, const char *what)
{
	errno = 0;
	check(ioctl(dev, call, arg) == 0, what);
}

struct eprobe {
	struct dtrace_eprobedesc head;
	struct dtrace_recdesc recs[RECS];
};

struct agg {
	struct dtrace_aggdesc head;
	struct dtrace_recdesc recs[RECS];
};

static struct dtrace_probedesc describe(const char *provider, const char *name)
{
	struct dtrace_probedesc desc = { 0 };

	strcpy((char *)desc.provider, provider);
	strcpy((char *)desc.name, name);
	return desc;
}

static void conf(void)
{
	struct dtrace_conf conf;

	works(DTRACEIOC_CONF, &conf, "CONF");
	check(conf.difversion == DIF_VERSION && conf.difintregs == DIF_NREGS && conf.diftupregs == DIF_NTREGS &&
	      conf.ctfmodel == 2 && conf.interface == DTRACE_INTERFACE, "CONF: values");
	refused(DTRACEIOC_CONF, BAD, EFAULT, "CONF: address");
	refused(DTRACEIOC_CONF, read_only, EFAULT, "CONF: read-only");
	refused(_IO(DTRACE_IOC_TYPE, 10), &conf, ENOTTY, "CONF: size");
	refused(_IO(DTRACE_IOC_TYPE, 99), &conf, ENOTTY, "no such call");
}

static void match(void)
{
	struct dtrace_probedesc desc = describe("dtrace", "BEGIN");

	works(DTRACEIOC_PROBEMATCH, &desc, "PROBEMATCH");
	check(desc.id == 1, "PROBEMATCH: id");
	desc = describe("", "");
	works(DTRACEIOC_PROBEMATCH, &desc, "PROBEMATCH: everything");
	check(desc.id == 1 && !strcmp((char *)desc.provider, "dtrace"), "PROBEMATCH: the first of all");
	desc = describe("dtr*", "[!BE]*");
	refused(DTRACEIOC_PROBEMATCH, &desc, ESRCH, "PROBEMATCH: none of a class");
	desc = describe("dtrace", "[");
	refused(DTRACEIOC_PROBEMATCH, &desc, ESRCH, "PROBEMATCH: half a class");
	desc = describe("dtrace", "");
	desc.id = 2;
	works(DTRACEIOC_PROBEMATCH, &desc, "PROBEMATCH: the last of dtrace");
	check(desc.id == 3 && !strcmp((char *)desc.name, "ERROR"), "PROBEMATCH: ERROR");
	desc = describe("dtrace", "");
	desc.id = 3;
	refused(DTRACEIOC_PROBEMATCH, &desc, ESRCH, "PROBEMATCH: none after the last");
	desc.id = UINT_MAX;
	refused(DTRACEIOC_PROBEMATCH, &desc, ESRCH, "PROBEMATCH: none after any");
	refused(DTRACEIOC_PROBES, &desc, ESRCH, "PROBES: none after any");
	/* Names without a terminating NUL. */
	memset(&desc, 'x', sizeof(desc));
	desc.id = 0;
	refused(DTRACEIOC_PROBEMATCH, &desc, ESRCH, "PROBEMATCH: endless names");
	memset(&desc, '*', sizeof(desc));
	desc.id = 0;
	works(DTRACEIOC_PROBEMATCH, &desc, "PROBEMATCH: endless globs");
	refused(DTRACEIOC_PROBEMATCH, BAD, EFAULT, "PROBEMATCH: address");
}

static void probearg(void)
{
	static const int none[] = { 0, 9, -1, INT_MIN, INT_MAX };
	struct dtrace_argdesc arg = { 0 };
	unsigned int i;

	refused(DTRACEIOC_PROBEARG, &arg, EINVAL, "PROBEARG: probe 0");
	arg.id = UINT_MAX;
	refused(DTRACEIOC_PROBEARG, &arg, EINVAL, "PROBEARG: no such probe");
	for (i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
		memset(&arg, 0xff, sizeof(arg));
		arg.id = 1;
		arg.ndx = none[i];
		works(DTRACEIOC_PROBEARG, &arg, "PROBEARG of BEGIN");
		check(arg.ndx == -1 && !arg.native[0] && !arg.xlate[0], "PROBEARG: BEGIN has none");
	}
	refused(DTRACEIOC_PROBEARG, BAD, EFAULT, "PROBEARG: address");
}

/* Calls about things that do not exist. */
static void nothing(void)
{
	struct eprobe eprobe = { .head = { .epid = 1 } };
	struct agg agg = { .head = { .id = 1 } };
	struct dtrace_fmtdesc format = { .format = 1 };
	struct dtrace_bufdesc buf = { 0 };
	struct dtrace_status status;
	struct dtrace_repldesc repl = { .matching = describe("dtrace", "END"), .create = describe("dtrace", "BEGIN") };
	uint32_t cpu;

	refused(DTRACEIOC_EPROBE, &eprobe, EINVAL, "EPROBE of nothing");
	refused(DTRACEIOC_AGGDESC, &agg, EINVAL, "AGGDESC of nothing");
	refused(DTRACEIOC_FORMAT, &format, EINVAL, "FORMAT of nothing");
	refused(DTRACEIOC_BUFSNAP, &buf, ENOENT, "BUFSNAP of nothing");
	refused(DTRACEIOC_AGGSNAP, &buf, ENOENT, "AGGSNAP of nothing");
	refused(DTRACEIOC_STATUS, &status, ENOENT, "STATUS of nothing");
	refused(DTRACEIOC_STOP, &cpu, EINVAL, "STOP of nothing");
	refused(DTRACEIOC_REPLICATE, &repl, ENOENT, "REPLICATE of nothing");
}

static void enable(void)
{
	struct dtrace_enable *enable = read_only;
	struct dtrace_enable good = { .dof = (uintptr_t)image }, bad = { .dof = 8 };
	struct eprobe eprobe = { .head = { .epid = 1 } };
	struct dtrace_reason reason;

	refused(DTRACEIOC_ENABLE, BAD, EFAULT, "ENABLE: address");
	refused(DTRACEIOC_ENABLE, &bad, EFAULT, "ENABLE: address of the image");
	bad.dof = 0;
	refused(DTRACEIOC_ENABLE, &bad, EFAULT, "ENABLE: no image");
	/* The page contains a good request, but the answer cannot be written to it. */
	check(enable->dof == good.dof, "the page");
	refused(DTRACEIOC_ENABLE, enable, EFAULT, "ENABLE: read-only");
	refused(DTRACEIOC_EPROBE, &eprobe, EINVAL, "EPROBE after that");
	works(DTRACEIOC_ENABLE, &good, "ENABLE");
	check(good.n_matched == 2, "ENABLE: matches");
	works(DTRACEIOC_REASON, &reason, "REASON");
	check(!reason.text[0], "REASON after a good call");
}

static void replicate(void)
{
	struct dtrace_repldesc repl = { .matching = describe("dtrace", "END"), .create = describe("dtrace", "BEGIN") };
	struct eprobe eprobe = { .head = { .epid = 3 } };
	struct dtrace_reason reason;

	refused(DTRACEIOC_EPROBE, &eprobe, EINVAL, "EPROBE before REPLICATE");
	works(DTRACEIOC_REPLICATE, &repl, "REPLICATE");
	works(DTRACEIOC_EPROBE, &eprobe, "EPROBE after REPLICATE");
	check(eprobe.head.probeid == 1, "REPLICATE: probe");
	repl.matching = describe("dtr*", "END");
	refused(DTRACEIOC_REPLICATE, &repl, ENOENT, "REPLICATE: a glob that is no description");
	works(DTRACEIOC_REASON, &reason, "REASON");
	check(!strcmp((char *)reason.text, "no enabling has this description"), "REASON of REPLICATE");
	memset(&repl, 'x', sizeof(repl));
	refused(DTRACEIOC_REPLICATE, &repl, ENOENT, "REPLICATE: endless names");
	refused(DTRACEIOC_REPLICATE, BAD, EFAULT, "REPLICATE: address");
	/* To probes that do not exist, but may be created. */
	repl.matching = describe("dtrace", "END");
	repl.create = describe("nonesuch", "");
	works(DTRACEIOC_REPLICATE, &repl, "REPLICATE: to no probe");
	eprobe.head.epid = 4;
	refused(DTRACEIOC_EPROBE, &eprobe, EINVAL, "EPROBE after REPLICATE to no probe");
	works(DTRACEIOC_RETRACT, &repl.create, "RETRACT");
	refused(DTRACEIOC_RETRACT, &repl.create, ENOENT, "RETRACT: again");
	works(DTRACEIOC_REASON, &reason, "REASON");
	check(!strcmp((char *)reason.text, "no enabling was replicated for this description"), "REASON of RETRACT");
	refused(DTRACEIOC_RETRACT, &repl.matching, ENOENT, "RETRACT: of an enabling");
	refused(DTRACEIOC_RETRACT, BAD, EFAULT, "RETRACT: address");
	/* More often than the number that a consumer may have at a time. */
	for (int n = 0; n < 2000; n++) {
		works(DTRACEIOC_REPLICATE, &repl, "REPLICATE: over and over");
		works(DTRACEIOC_RETRACT, &repl.create, "RETRACT: over and over");
	}
	/* Two replications to the same description are retracted at once. */
	works(DTRACEIOC_REPLICATE, &repl, "REPLICATE: once more");
	works(DTRACEIOC_REPLICATE, &repl, "REPLICATE: and again");
	works(DTRACEIOC_RETRACT, &repl.create, "RETRACT: both");
	refused(DTRACEIOC_RETRACT, &repl.create, ENOENT, "RETRACT: of both again");
}

static void dofget(void)
{
	struct {
		struct dof_hdr hdr;
		struct dof_sec sec;
		struct dof_optdesc opts[64];
	} dof;
	unsigned int i, n;
	bool found = false;

	memset(&dof, 0xff, sizeof(dof));
	dof.hdr.loadsz = 0;
	works(DTRACEIOC_DOFGET, &dof, "DOFGET: length");
	check(dof.hdr.loadsz > sizeof(dof.hdr) && dof.hdr.loadsz <= sizeof(dof), "DOFGET: length");
	check(dof.sec.ty == UINT_MAX, "DOFGET: no more than there is room for");
	dof.hdr.loadsz--;
	works(DTRACEIOC_DOFGET, &dof, "DOFGET: a byte too short");
	check(dof.sec.ty == UINT_MAX, "DOFGET: nothing if not all");
	works(DTRACEIOC_DOFGET, &dof, "DOFGET");
	check(dof.hdr.secnum == 1 && dof.sec.size + dof.sec.offset == dof.hdr.loadsz &&
	      dof.sec.entsize == sizeof(dof.opts[0]), "DOFGET: section");
	n = dof.sec.size / sizeof(dof.opts[0]);
	for (i = 0; i < n && i < 64; i++)
		found |= dof.opts[i].option == DTRACEOPT_OPT_BUFSIZE && dof.opts[i].value == 65536;
	check(found, "DOFGET: bufsize");
	refused(DTRACEIOC_DOFGET, BAD, EFAULT, "DOFGET: address");
}

static void eprobe(void)
{
	struct eprobe desc;
	int room;

	for (room = -1; room <= 2; room++) {
		memset(&desc, 0xff, sizeof(desc));
		desc.head.epid = 1;
		desc.head.nrecs = room;
		works(DTRACEIOC_EPROBE, &desc, "EPROBE");
		check(desc.head.probeid == 1 && desc.head.nrecs == 1, "EPROBE: head");
		check((desc.recs[0].action == UINT_MAX) == (room < 1), "EPROBE: records");
		check(desc.recs[1].action == UINT_MAX, "EPROBE: no record too many");
	}
	check(desc.recs[0].format == 1 && desc.recs[0].size == 8, "EPROBE: record");
	desc.head.epid = 0;
	refused(DTRACEIOC_EPROBE, &desc, EINVAL, "EPROBE 0");
	desc.head.epid = UINT_MAX;
	refused(DTRACEIOC_EPROBE, &desc, EINVAL, "EPROBE: the last number");
	refused(DTRACEIOC_EPROBE, BAD, EFAULT, "EPROBE: address");
}

static void aggdesc(void)
{
	struct agg desc;

	memset(&desc, 0xff, sizeof(desc));
	desc.head = (struct dtrace_aggdesc){ .id = 1, .name = 77, .varid = 78, .flags = 79, .nrecs = INT_MIN };
	works(DTRACEIOC_AGGDESC, &desc, "AGGDESC: length");
	check(desc.head.nrecs == 1 && desc.recs[0].action == UINT_MAX, "AGGDESC: no more than there is room for");
	check(desc.head.name == 77 && desc.head.varid == 78 && desc.head.flags == 79, "AGGDESC: the consumer's own");
	works(DTRACEIOC_AGGDESC, &desc, "AGGDESC");
	check(desc.recs[0].size == 8 && desc.head.epid == 2, "AGGDESC: record");
	desc.head.id = 0;
	refused(DTRACEIOC_AGGDESC, &desc, EINVAL, "AGGDESC 0");
	desc.head.id = 2;
	refused(DTRACEIOC_AGGDESC, &desc, EINVAL, "AGGDESC: one too many");
	refused(DTRACEIOC_AGGDESC, BAD, EFAULT, "AGGDESC: address");
}

static void format(void)
{
	char text[8];
	struct dtrace_fmtdesc desc = { .format = 1, .string = (uintptr_t)text };

	memset(text, 'x', sizeof(text));
	works(DTRACEIOC_FORMAT, &desc, "FORMAT: length");
	check(desc.length == 5 && text[0] == 'x', "FORMAT: length");
	desc.length = 4;
	works(DTRACEIOC_FORMAT, &desc, "FORMAT: a byte too short");
	check(desc.length == 5 && text[0] == 'x', "FORMAT: nothing if not all");
	works(DTRACEIOC_FORMAT, &desc, "FORMAT");
	check(!memcmp(text, "<%d>\0xxx", 8), "FORMAT: text");
	desc.string = 8;
	refused(DTRACEIOC_FORMAT, &desc, EFAULT, "FORMAT: address of the text");
	desc.length = -1;
	works(DTRACEIOC_FORMAT, &desc, "FORMAT: less than no room");
	desc.format = 0;
	refused(DTRACEIOC_FORMAT, &desc, EINVAL, "FORMAT 0");
	desc.format = 2;
	refused(DTRACEIOC_FORMAT, &desc, EINVAL, "FORMAT: one too many");
	refused(DTRACEIOC_FORMAT, BAD, EFAULT, "FORMAT: address");
}

static void run(void)
{
	static char room[65536 + DTRACE_BUFFER_TIMES_MAX];
	struct dtrace_status status;
	struct dtrace_bufdesc buf = { .size = sizeof(room) - 1, .data = (uintptr_t)room };
	uint32_t cpu, kept = 77;

	refused(DTRACEIOC_GO, BAD, EFAULT, "GO: address");
	refused(DTRACEIOC_STATUS, &status, ENOENT, "STATUS after that");
	works(DTRACEIOC_GO, &cpu, "GO");
	refused(DTRACEIOC_GO, &kept, EBUSY, "GO twice");
	check(kept == 77, "GO twice: no answer");
	memset(&status, 0xff, sizeof(status));
	/* The older and smaller versions of the structure, beginning with the one without Linux'
	 * own fields. */
	works(_IOC(_IOC_READ, DTRACE_IOC_TYPE, 11, DTRACE_STATUS_COMMON_SIZE), &status, "STATUS: common part");
	check(!status.errors && !status.killed && status.recursions == ULLONG_MAX, "STATUS: no more than that");
	works(_IOC(_IOC_READ, DTRACE_IOC_TYPE, 11, DTRACE_STATUS_FIRST_SIZE), &status, "STATUS: as it first was");
	check(!status.recursions && !status.missed && status.unbuffered == ULLONG_MAX, "STATUS: no more than that either");
	works(_IOC(_IOC_READ, DTRACE_IOC_TYPE, 11, DTRACE_STATUS_SECOND_SIZE), &status, "STATUS: as it was then");
	check(!status.unbuffered && status.waits == ULLONG_MAX, "STATUS: no more than that then");
	works(_IOC(_IOC_READ, DTRACE_IOC_TYPE, 11, DTRACE_STATUS_THIRD_SIZE), &status, "STATUS: as it was before");
	check(!status.carried && status.unanswered == ULLONG_MAX, "STATUS: no more than that before");
	works(DTRACEIOC_STATUS, &status, "STATUS");
	check(!status.unbuffered && !status.unanswered, "STATUS: nothing was lost");
	refused(_IOC(_IOC_READ, DTRACE_IOC_TYPE, 11, 96), &status, ENOTTY, "STATUS: a size that never was");
	buf.cpu = cpu;
	refused(DTRACEIOC_BUFSNAP, &buf, EINVAL, "BUFSNAP: a byte too short");
	buf.size = sizeof(room);
	buf.cpu = UINT_MAX;
	refused(DTRACEIOC_BUFSNAP, &buf, EINVAL, "BUFSNAP: no such CPU");
	buf.cpu = cpu;
	works(DTRACEIOC_BUFSNAP, &buf, "BUFSNAP");
	check(buf.size == 24 && !buf.drops, "BUFSNAP: one record");
	refused(DTRACEIOC_STOP, BAD, EFAULT, "STOP: address");
	works(DTRACEIOC_STOP, &cpu, "STOP");
	refused(DTRACEIOC_STOP, &kept, EINVAL, "STOP twice");
	check(kept == 77, "STOP twice: no answer");
}

int main(int argc, char **argv)
{
	struct dtrace_enable *request;
	struct stat st;
	int fd;

	dev = open("/dev/dtrace", O_RDWR);
	fd = argc == 2 ? open(argv[1], O_RDONLY) : -1;
	if (dev < 0 || fd < 0 || fstat(fd, &st)) {
		perror("calls");
		return 2;
	}
	image = malloc(st.st_size);
	read_only = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (!image || read_only == MAP_FAILED || read(fd, image, st.st_size) != st.st_size) {
		perror("calls");
		return 2;
	}
	request = read_only;
	request->dof = (uintptr_t)image;
	if (mprotect(read_only, 4096, PROT_READ)) {
		perror("calls");
		return 2;
	}
	conf();
	match();
	probearg();
	nothing();
	enable();
	eprobe();
	aggdesc();
	format();
	dofget();
	replicate();
	run();
	printf("%d failed\n", failures);
	return failures != 0;
}
