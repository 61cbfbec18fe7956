// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

/*
 * @gcc: -fno-omit-frame-pointer
 * A program that takes locks a known number of times, and has threads sleep for them.
 */

#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define FUNCTION __attribute__((noipa, noinline))

pthread_mutex_t quick = PTHREAD_MUTEX_INITIALIZER;
pthread_mutex_t busy = PTHREAD_MUTEX_INITIALIZER;
pthread_mutex_t twice = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
pthread_mutex_t told = PTHREAD_MUTEX_INITIALIZER;
pthread_mutex_t lending, timed = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
pthread_rwlock_t door = PTHREAD_RWLOCK_INITIALIZER;
static int is_told;
static pid_t sleeper;

static void pause_ms(long ms)
{
	struct timespec time = { 0, ms * 1000000 };

	nanosleep(&time, NULL);
}

/* Waits until the thread sleeps in futex(). */
static void wait_for(void)
{
	char path[64], text[32];
	int file, n;

	for (;;) {
		pid_t tid = __atomic_load_n(&sleeper, __ATOMIC_SEQ_CST);

		snprintf(path, sizeof(path), "/proc/self/task/%d/syscall", tid);
		file = tid ? open(path, O_RDONLY) : -1;
		n = file < 0 ? 0 : read(file, text, sizeof(text) - 1);
		if (file >= 0)
			close(file);
		if (n > 4 && !strncmp(text, "202 ", 4))
			return;
		pause_ms(1);
	}
}

FUNCTION void sleeps_for_mutex(pthread_mutex_t *lock)
{
	pthread_mutex_lock(lock);
	pthread_mutex_unlock(lock);
}

FUNCTION void sleeps_for_time(pthread_mutex_t *lock)
{
	struct timespec end;

	clock_gettime(CLOCK_REALTIME, &end);
	end.tv_sec += 600;
	pthread_mutex_timedlock(lock, &end);
	pthread_mutex_unlock(lock);
}

FUNCTION void sleeps_to_read(void)
{
	pthread_rwlock_rdlock(&door);
	pthread_rwlock_unlock(&door);
}

FUNCTION void sleeps_to_write(void)
{
	pthread_rwlock_wrlock(&door);
	pthread_rwlock_unlock(&door);
}

static void *thread(void *what)
{
	__atomic_store_n(&sleeper, gettid(), __ATOMIC_SEQ_CST);
	switch (*(char *)what) {
	case 'm':
		sleeps_for_mutex(&busy);
		break;
	case 'l':
		sleeps_for_mutex(&lending);
		break;
	case 't':
		sleeps_for_time(&timed);
		break;
	case 'r':
		sleeps_to_read();
		break;
	case 'w':
		sleeps_to_write();
		break;
	case 'c':
		/* Waits for the other thread, because otherwise that one could sleep for the
		 * mutex. */
		sleeper = getpid();
		wait_for();
		pthread_mutex_lock(&told);
		is_told = 1;
		pthread_cond_signal(&condition);
		pthread_mutex_unlock(&told);
	}
	return NULL;
}

/* Starts another thread, which sleeps for the lock that this one holds, and releases the lock. */
static void contend(const char *what)
{
	pthread_t other;

	sleeper = 0;
	pthread_create(&other, NULL, thread, (void *)what);
	wait_for();
	pause_ms(20);
	switch (*what) {
	case 'm':
		pthread_mutex_unlock(&busy);
		break;
	case 'l':
		pthread_mutex_unlock(&lending);
		break;
	case 't':
		pthread_mutex_unlock(&timed);
		break;
	default:
		pthread_rwlock_unlock(&door);
	}
	pthread_join(other, NULL);
}

FUNCTION void holds_quickly(void)
{
	for (int i = 0; i < 100; i++) {
		pthread_mutex_lock(&quick);
		pthread_mutex_unlock(&quick);
	}
}

FUNCTION void holds_twice(void)
{
	for (int i = 0; i < 7; i++) {
		pthread_mutex_lock(&twice);
		pthread_mutex_lock(&twice);
		pthread_mutex_unlock(&twice);
		pthread_mutex_unlock(&twice);
	}
}

FUNCTION void fails_to_hold(void)
{
	if (pthread_mutex_trylock(&busy) == 0)
		abort();
}

FUNCTION void holds_while_others_sleep(void)
{
	for (int i = 0; i < 3; i++) {
		pthread_mutex_lock(&busy);
		fails_to_hold();
		contend("m");
	}
	pthread_mutex_lock(&lending);
	contend("l");
	pthread_mutex_lock(&timed);
	contend("t");
	for (int i = 0; i < 2; i++) {
		pthread_rwlock_wrlock(&door);
		contend("r");
	}
	pthread_rwlock_rdlock(&door);
	contend("w");
}

FUNCTION void waits(void)
{
	pthread_t other;

	pthread_mutex_lock(&told);
	pthread_create(&other, NULL, thread, "c");
	while (!is_told)
		pthread_cond_wait(&condition, &told);
	pthread_mutex_unlock(&told);
	pthread_join(other, NULL);
}

int main(void)
{
	pthread_mutexattr_t lends;

	pthread_mutexattr_init(&lends);
	pthread_mutexattr_setprotocol(&lends, PTHREAD_PRIO_INHERIT);
	pthread_mutex_init(&lending, &lends);
	holds_quickly();
	holds_twice();
	holds_while_others_sleep();
	waits();
	return 0;
}
