// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

/*
 * Instructions that are executed out of line while they have a probe, and everything that could
 * see that: pid-moved [WORD...]. Each word is a piece of work, which prints one line. A tracer
 * is a child of this process, so that the process with the probes is the traced one.
 */

#define _GNU_SOURCE
#include <cpuid.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/rseq.h>
#include <sys/time.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include "pid-moved.h"
#include "wait-word.h"

#define TURNS 200
#define THREADS 32
#define LONG_COPY (256 << 10)
#define PLACES (sizeof(walk_places) / sizeof(walk_places[0]))

/* What this process and its tracer tell each other. */
static struct {
	volatile bool go, done;
	long seen[4];
} *shared;

/* The code of this program and of its libraries: mapped files, and the vDSO. */
static struct {
	unsigned long start, end;
} texts[32];
static int text_count;

static void find_texts(void)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[512], rights[8], name[256];
	unsigned long start, end;

	while (maps && text_count < 32 && fgets(line, sizeof(line), maps)) {
		name[0] = 0;
		if (sscanf(line, "%lx-%lx %7s %*s %*s %*s %255[^\n]", &start, &end, rights, name) < 3 || !strchr(rights, 'x'))
			continue;
		if (strcmp(name, "[vdso]") && (name[0] != '/' || strstr(name, "(deleted)")))
			continue;
		texts[text_count].start = start;
		texts[text_count++].end = end;
	}
	if (maps)
		fclose(maps);
}

static bool is_text(unsigned long at)
{
	for (int i = 0; i < text_count; i++)
		if (texts[i].start <= at && at < texts[i].end)
			return true;
	return false;
}

/* An end whose number a clause can compare with its own count. */
__attribute__((noipa, noinline)) void ended(long turns)
{
	__asm__ volatile("" : : "r"(turns));
}

/* A number that depends on everything that a function returned and left in its area. */
static uint64_t checksum(form *function, int turns)
{
	struct area area = { { 1, 2, 3, 4, 5, 6, 7, 8 } };
	uint64_t sum = 0;

	tally = 1000;
	for (long n = 0; n < turns; n++) {
		sum = sum * 31 + function(n * 0x9e3779b97f4a7c15, n * n + 3, &area);
		for (int i = 0; i < 32; i++)
			sum = sum * 33 + area.word[i];
	}
	return sum;
}

static void forms(void)
{
	form *const functions[] = { locked, strings, flags, table, numbers, vectors };

	printf("forms");
	for (unsigned int i = 0; i < sizeof(functions) / sizeof(functions[0]); i++)
		printf(" %016lx", checksum(functions[i], TURNS));
	printf("\n");
}

static void avx(void)
{
	if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
		printf("avx %016lx\n", checksum(wide, TURNS));
	else
		printf("avx none\n");
}

static void processor(void)
{
	unsigned int a, b, c, d;
	long wrong = 0;

	__cpuid(0, a, b, c, d);
	for (int n = 0; n < TURNS; n++)
		wrong += itself(b, 0, NULL) != 0;
	printf("processor %ld wrong\n", wrong);
}

/* Timers. */
static volatile sig_atomic_t alarms, elsewhere, at_copy;

static void on_alarm(int sig, siginfo_t *info, void *context)
{
	unsigned long at = ((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];

	(void)sig;
	(void)info;
	alarms++;
	elsewhere += !is_text(at);
	at_copy += at == (unsigned long)copy + COPY_REP;
}

static void on(int sig, void (*handler)(int, siginfo_t *, void *))
{
	struct sigaction action = { .sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_RESTART };

	sigaction(sig, &action, NULL);
}

static void alarm_every(int us)
{
	struct itimerval timer = { { 0, us }, { 0, us } };

	setitimer(ITIMER_REAL, &timer, NULL);
}

static unsigned char *source, *target;

/* Whether a long copy copies correctly. */
static bool copied(long n)
{
	source[n % LONG_COPY] ^= n + 1;
	source[LONG_COPY - 1 - n % 1000] += 3;
	copy(target, source, LONG_COPY);
	return !memcmp(source, target, LONG_COPY);
}

static void buffers(void)
{
	source = malloc(LONG_COPY);
	target = malloc(LONG_COPY);
	for (int i = 0; i < LONG_COPY; i++)
		source[i] = i * 7;
}

static void signals(void)
{
	uint64_t before = checksum(locked, 10) + checksum(strings, 10);
	long wrong = 0;

	on(SIGALRM, on_alarm);
	alarm_every(200);
	for (long n = 0; n < TURNS; n++) {
		wrong += !copied(n);
		wrong += checksum(locked, 10) + checksum(strings, 10) != before;
	}
	alarm_every(0);
	ended(TURNS);
	printf("signals %d elsewhere, %s, %ld wrong\n", (int)elsewhere, at_copy ? "interrupted" : "not interrupted", wrong);
}

/* Faults: what the handler gets, and what it does about it. */
static volatile sig_atomic_t faults;
static struct fault {
	int signal, code;
	unsigned long at, address, trap, error, cr2;
} fault;
static void (*mend)(greg_t *regs);
static void *page;

static void on_fault(int sig, siginfo_t *info, void *context)
{
	greg_t *regs = ((ucontext_t *)context)->uc_mcontext.gregs;

	if (faults++)
		_exit(99);
	fault = (struct fault){ sig, info->si_code, regs[REG_RIP], (unsigned long)info->si_addr, regs[REG_TRAPNO], regs[REG_ERR],
				regs[REG_CR2] };
	mend(regs);
}

static void mend_divisor(greg_t *regs)
{
	regs[REG_RSI] = 7;
}

static void mend_page(greg_t *regs)
{
	(void)regs;
	mprotect(page, 4096, PROT_READ | PROT_WRITE);
}

static void mend_skip(greg_t *regs)
{
	regs[REG_RIP] += LOAD_LENGTH;
}

/* Prints the last fault; the address in siginfo is that of the instruction, of the page, or
 * none. */
static void told(const char *name, void *function, int offset, long result)
{
	unsigned long at = (unsigned long)function + offset;
	const char *address = "wrong";

	if (fault.address == at)
		address = "instruction";
	else if (fault.address == (unsigned long)page && fault.cr2 == fault.address)
		address = "page";
	else if (!fault.address)
		address = "none";
	printf(" %s(%d %d at %s address %s trap %lu error %lu result %ld)", name, fault.signal, fault.code,
	       fault.at == at ? "instruction" : "elsewhere", address, fault.trap, fault.error, result);
	faults = 0;
}

static void faulting(void)
{
	long *word;

	page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	word = page;
	on(SIGFPE, on_fault);
	on(SIGSEGV, on_fault);
	printf("faults");

	mend = mend_divisor;
	told("divide", divide, DIVIDE_DIV, divide(100, 0));

	word[0] = 41;
	mprotect(page, 4096, PROT_NONE);
	mend = mend_page;
	add_to(word);
	told("add_to", add_to, 0, word[0]);

	mprotect(page, 4096, PROT_NONE);
	told("load", load, 0, load(page));

	munmap(page, 4096);
	mend = mend_skip;
	told("skipped", load, 0, (load(page), 0));
	told("misaligned", load_aligned, 0, (load_aligned((char *)page + 4096 + 8), 0));
	printf("\n");
}

/* Pages that do not exist yet, without a fault handler. */
static void fresh(void)
{
	char *fresh = mmap(NULL, 64 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	long sum = 0;

	for (int i = 0; i < 64; i++) {
		sum += i & 1 ? load(fresh + i * 4096) : 0;
		add_to((long *)(fresh + i * 4096));
		sum += *(long *)(fresh + i * 4096);
	}
	printf("fresh %ld\n", sum);
}

/* Checks the steps through walk(): each must lead to the next place. */
static volatile sig_atomic_t right, wrong_step;

static void step_to(unsigned long at)
{
	unsigned long offset = at - (unsigned long)walk;

	if (offset >= WALK_END) {
		wrong_step += !is_text(at);
		return;
	}
	if (offset == WALK_REP && right && walk_places[right - 1] == WALK_REP)
		return;
	if ((size_t)right < PLACES && walk_places[right] == offset)
		right++;
	else
		wrong_step++;
}

static void on_trap(int sig, siginfo_t *info, void *context)
{
	(void)sig;
	step_to(((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP]);
	/* The siginfo of a step has the address to which it has led. */
	if (info->si_code == TRAP_TRACE && (unsigned long)info->si_addr != (unsigned long)((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP])
		wrong_step++;
}

static long walk_area[32] = { 11, 12, 13 };

static void own_steps(void)
{
	long result;

	on(SIGTRAP, on_trap);
	__asm__ volatile("sub $128, %%rsp\n	pushf\n	orl $0x100, (%%rsp)\n	popf\n"
			 "	mov $9, %%edi\n	mov %1, %%rsi\n	call walk\n"
			 "	pushf\n	andl $~0x100, (%%rsp)\n	popf\n	add $128, %%rsp\n"
			 : "=a"(result)
			 : "r"(walk_area)
			 : "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "xmm0", "memory", "cc");
	printf("own steps %d of %zu, %d wrong, result %ld\n", (int)right, PLACES, (int)wrong_step, result);
}

#include "pid-moved-tracer.h"

static void *many(void *turns)
{
	for (long n = 0; n < (long)turns; n++)
		increase();
	return NULL;
}

static void threads(void)
{
	pthread_t ids[THREADS];

	tally = 0;
	on(SIGALRM, on_alarm);
	alarm_every(200);
	for (int i = 0; i < THREADS; i++)
		pthread_create(&ids[i], NULL, many, (void *)1000L);
	for (int i = 0; i < THREADS; i++)
		pthread_join(ids[i], NULL);
	alarm_every(0);
	printf("threads %ld, %d elsewhere\n", tally, (int)elsewhere);
}

/* Whether this process computes the same as a process without probes. */
#define GOOD 0x650e47f428b39bf3UL
static bool good(void)
{
	return checksum(numbers, 20) == GOOD && copied(1);
}

static pid_t handler_child = -1;

/* A child that begins in the middle of what was interrupted. */
static void on_alarm_fork(int sig, siginfo_t *info, void *context)
{
	on_alarm(sig, info, context);
	if (at_copy && handler_child < 0) {
		alarm_every(0);
		handler_child = fork();
	}
}

static int status_of(pid_t pid)
{
	int status;

	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

/* Whether a program that a child has executed is right; the child first makes a call in this
 * process' memory. */
static int anew(void)
{
	pid_t pid = vfork();

	if (!pid) {
		increase();
		execl("/proc/self/exe", "pid-moved", "good", NULL);
		_exit(9);
	}
	return status_of(pid);
}

static void forks(void)
{
	pid_t pid = fork();
	bool right_copy = true;
	int first, second;

	if (!pid)
		_exit(good());
	first = status_of(pid);
	second = anew();
	on(SIGALRM, on_alarm_fork);
	alarm_every(300);
	for (long n = 0; n < 100000 && handler_child < 0; n++)
		right_copy = copied(n) && right_copy;
	alarm_every(0);
	if (!handler_child)
		_exit(right_copy && good());
	printf("forks %d %d %d %d %d\n", first, second, status_of(handler_child), right_copy, good());
}

/* Per-CPU counters. */
#define SEQUENCES 20000
static struct area counters[256];
static volatile sig_atomic_t stuck;

static void *sequences(void *result)
{
	void *area = (char *)__builtin_thread_pointer() + __rseq_offset;
	cpu_set_t cpus;
	long done = 0, tried = 0;

	while (done < SEQUENCES && tried < 100 * SEQUENCES) {
		if (!(tried++ & 63)) {
			CPU_ZERO(&cpus);
			CPU_SET(tried >> 6 & 1, &cpus);
			sched_setaffinity(0, sizeof(cpus), &cpus);
		}
		done += restartable(area, counters);
	}
	stuck += done < SEQUENCES;
	*(long *)result = done;
	return NULL;
}

static void rseq(void)
{
	pthread_t ids[4];
	long done[4], committed = 0, counted = 0;

	if (!__rseq_size) {
		printf("rseq none\n");
		return;
	}
	on(SIGALRM, on_alarm);
	alarm_every(500);
	for (int i = 0; i < 4; i++)
		pthread_create(&ids[i], NULL, sequences, &done[i]);
	for (int i = 0; i < 4; i++) {
		pthread_join(ids[i], NULL);
		committed += done[i];
	}
	alarm_every(0);
	for (int i = 0; i < 256; i++)
		counted += counters[i].word[0];
	printf("rseq %s, %s\n", stuck ? "stuck" : "goes on", counted == committed ? "counted" : "miscounted");
}

/* The number of slot areas in this process; unmaps them if `unmap`. */
static int areas(bool unmap)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	unsigned long start, end;
	char line[512];
	int count = 0;

	while (maps && fgets(line, sizeof(line), maps)) {
		if (!strstr(line, "/dtrace-slots (deleted)") || sscanf(line, "%lx-%lx", &start, &end) != 2)
			continue;
		count++;
		if (unmap)
			munmap((void *)start, end - start);
	}
	if (maps)
		fclose(maps);
	return count;
}

static void inherits(void)
{
	pid_t pid = fork();

	if (!pid)
		_exit(areas(false));
	printf("areas %d, of a child %d\n", areas(false), status_of(pid));
}

static void unmaps(void)
{
	uint64_t before = checksum(numbers, 20) + checksum(strings, 20);

	areas(true);
	printf("unmaps %s", checksum(numbers, 20) + checksum(strings, 20) == before ? "right" : "wrong");
	printf(", %d left\n", areas(false));
}

/* Leaves no free address space within reach of the program's code, below it, and waits until the
 * module has looked for some. */
static void crowd(void)
{
	unsigned long text = (unsigned long)crowd & ~4095UL, end = text - (3UL << 30), starts[64], ends[64];
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[512];
	int count = 0;

	while (maps && count < 64 && fgets(line, sizeof(line), maps))
		if (sscanf(line, "%lx-%lx", &starts[count], &ends[count]) == 2 && ends[count] > end)
			count++;
	if (maps)
		fclose(maps);
	for (int i = 0; i < count && starts[i] <= text; i++) {
		if (starts[i] > end)
			mmap((void *)end, starts[i] - end, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
		end = ends[i];
	}
	block_signal();
	printf("crowded\n");
	fflush(stdout);
	await_signal();
}

static const struct {
	const char *word;
	void (*body)(void);
} words[] = {
	{ "forms", forms },	{ "avx", avx },		{ "processor", processor }, { "signals", signals },
	{ "faults", faulting }, { "fresh", fresh },	{ "own", own_steps },	    { "steps", steps },
	{ "stops", stops },	{ "dies", dies },	{ "threads", threads },	    { "forks", forks },
	{ "rseq", rseq },	{ "areas", inherits },	{ "unmaps", unmaps },	    { "crowd", crowd },
};

int main(int argc, char **argv)
{
	shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	buffers();
	find_texts();
	if (argc == 2 && !strcmp(argv[1], "good"))
		return good();
	for (int i = 1; i < argc; i++)
		for (size_t k = 0; k < sizeof(words) / sizeof(words[0]); k++)
			if (!strcmp(argv[i], words[k].word)) {
				words[k].body();
				fflush(stdout);
			}
	return 0;
}
