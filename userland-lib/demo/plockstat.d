#!/usr/sbin/dtrace -s
/*
 * SPDX-FileCopyrightText: The DTrace for Linux authors
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * How long the threads of a process hold its mutexes and readers/writer locks, and how often and
 * how long they sleep for them: plockstat.d -c COMMAND, or plockstat.d 10 -p PID for ten seconds.
 * Times are averages in nanoseconds. Sleeps are also shown by the user stacks that led to them.
 *
 * A wait for a condition releases the mutex and acquires it again. The C library implements robust
 * locks, priority-inheriting locks and locks with a timeout in functions without symbols, to which
 * it jumps. For these a lock counts as acquired when the library jumps, or when its sleep ends.
 */

#pragma D option quiet
#pragma D option defaultargs

inline int MUTEX = 1;
inline int READER = 2;
inline int WRITER = 3;

/*
 * By lock: when the thread acquired it, from which caller, in which mode, and how many more times
 * recursively.
 */
self uint64_t taken[uint64_t];
self uint64_t by[uint64_t];
self int how[uint64_t];
self int again[uint64_t];

dtrace:::BEGIN
{
	left = $1;
}

profile:::tick-1s
/$1 && --left == 0/
{
	exit(0);
}

pid$target::pthread_mutex_lock:entry,
pid$target::pthread_mutex_trylock:entry,
pid$target::pthread_mutex_timedlock:entry,
pid$target::pthread_mutex_clocklock:entry
{
	self->lock = arg0;
	self->kind = MUTEX;
	self->caller = ucaller;
	self->jumped = 0;
}

pid$target::pthread_rwlock_rdlock:entry,
pid$target::pthread_rwlock_tryrdlock:entry,
pid$target::pthread_rwlock_timedrdlock:entry,
pid$target::pthread_rwlock_clockrdlock:entry
{
	self->lock = arg0;
	self->kind = READER;
	self->caller = ucaller;
	self->jumped = 0;
}

pid$target::pthread_rwlock_wrlock:entry,
pid$target::pthread_rwlock_trywrlock:entry,
pid$target::pthread_rwlock_timedwrlock:entry,
pid$target::pthread_rwlock_clockwrlock:entry
{
	self->lock = arg0;
	self->kind = WRITER;
	self->caller = ucaller;
	self->jumped = 0;
}

/*
 * FUTEX_WAIT, FUTEX_LOCK_PI, FUTEX_WAIT_BITSET, FUTEX_LOCK_PI2 on a word within the lock. The
 * largest kind of lock has 56 bytes.
 */
syscall::futex:entry
/self->lock && arg0 - self->lock < 56 && (1 << (arg1 & 0x7f) & 0x2241)/
{
	self->sleeps = timestamp;
	self->taken[self->lock] = self->jumped ? 0 : self->taken[self->lock];
}

syscall::futex:return
/self->sleeps/
{
	this->nanos = timestamp - self->sleeps;
	self->sleeps = 0;
	if (self->kind == MUTEX) {
		@mutex_sleeps[uaddr(self->lock), uaddr(self->caller)] = count();
		@mutex_slept[uaddr(self->lock), uaddr(self->caller)] = avg(this->nanos);
	} else if (self->kind == READER) {
		@reader_sleeps[uaddr(self->lock), uaddr(self->caller)] = count();
		@reader_slept[uaddr(self->lock), uaddr(self->caller)] = avg(this->nanos);
	} else {
		@writer_sleeps[uaddr(self->lock), uaddr(self->caller)] = count();
		@writer_slept[uaddr(self->lock), uaddr(self->caller)] = avg(this->nanos);
	}
	self->slept += this->nanos;
}

/* A sleep after a jump. Only ETIMEDOUT (110) means that the library has given up. */
syscall::futex:return
/self->slept && self->jumped/
{
	@ways[uaddr(self->lock), ustack(8)] = quantize(self->slept);
	self->slept = 0;
	self->taken[self->lock] = errno == 110 ? 0 : timestamp;
}

pid$target::pthread_mutex_lock:return,
pid$target::pthread_mutex_trylock:return,
pid$target::pthread_mutex_timedlock:return,
pid$target::pthread_mutex_clocklock:return,
pid$target::pthread_rwlock_*rdlock:return,
pid$target::pthread_rwlock_*wrlock:return
/self->lock && self->slept/
{
	@ways[uaddr(self->lock), ustack(8)] = quantize(self->slept);
	self->slept = 0;
}

pid$target::pthread_mutex_lock:return,
pid$target::pthread_mutex_trylock:return,
pid$target::pthread_mutex_timedlock:return,
pid$target::pthread_mutex_clocklock:return,
pid$target::pthread_rwlock_*rdlock:return,
pid$target::pthread_rwlock_*wrlock:return
/self->lock/
{
	/*
	 * Either the lock was acquired, or the library has jumped to another function to acquire
	 * it.
	 */
	self->jumped = uregs[R_PC] != self->caller;
	if (self->jumped || arg1 == 0) {
		if (self->taken[self->lock]) {
			self->again[self->lock]++;
		} else {
			self->taken[self->lock] = timestamp;
			self->by[self->lock] = self->caller;
			self->how[self->lock] = self->kind;
		}
	}
	self->lock = self->jumped ? self->lock : 0;
}

pid$target::pthread_mutex_unlock:entry,
pid$target::pthread_rwlock_unlock:entry
{
	this->lock = arg0;
}

pid$target::pthread_cond_wait:entry,
pid$target::pthread_cond_timedwait:entry,
pid$target::pthread_cond_clockwait:entry
{
	this->lock = arg1;
	self->waits = arg1;
	self->waiter = ucaller;
}

pid$target::pthread_mutex_unlock:entry,
pid$target::pthread_rwlock_unlock:entry,
pid$target::pthread_cond_wait:entry,
pid$target::pthread_cond_timedwait:entry,
pid$target::pthread_cond_clockwait:entry
/self->taken[this->lock]/
{
	self->lock = 0;
	if (self->again[this->lock]) {
		self->again[this->lock]--;
	} else {
		this->nanos = timestamp - self->taken[this->lock];
		this->by = self->by[this->lock];
		if (self->how[this->lock] == MUTEX) {
			@mutex_holds[uaddr(this->lock), uaddr(this->by)] = count();
			@mutex_held[uaddr(this->lock), uaddr(this->by)] = avg(this->nanos);
		} else if (self->how[this->lock] == READER) {
			@reader_holds[uaddr(this->lock), uaddr(this->by)] = count();
			@reader_held[uaddr(this->lock), uaddr(this->by)] = avg(this->nanos);
		} else {
			@writer_holds[uaddr(this->lock), uaddr(this->by)] = count();
			@writer_held[uaddr(this->lock), uaddr(this->by)] = avg(this->nanos);
		}
		self->taken[this->lock] = 0;
		self->by[this->lock] = 0;
		self->how[this->lock] = 0;
	}
}

pid$target::pthread_cond_wait:return,
pid$target::pthread_cond_timedwait:return,
pid$target::pthread_cond_clockwait:return
/self->waits/
{
	self->taken[self->waits] = timestamp;
	self->by[self->waits] = self->waiter;
	self->how[self->waits] = MUTEX;
	self->waits = 0;
}

dtrace:::END
{
	printf("\nMutexes: sleeps\n%8s %12s  %-38s %s\n", "COUNT", "NANOSECONDS", "LOCK", "CALLER");
	printa("%@8d %@12d  %-38A %A\n", @mutex_sleeps, @mutex_slept);
	printf("\nMutexes: holds\n%8s %12s  %-38s %s\n", "COUNT", "NANOSECONDS", "LOCK", "CALLER");
	printa("%@8d %@12d  %-38A %A\n", @mutex_holds, @mutex_held);
	printf("\nReaders: sleeps\n%8s %12s  %-38s %s\n", "COUNT", "NANOSECONDS", "LOCK", "CALLER");
	printa("%@8d %@12d  %-38A %A\n", @reader_sleeps, @reader_slept);
	printf("\nReaders: holds\n%8s %12s  %-38s %s\n", "COUNT", "NANOSECONDS", "LOCK", "CALLER");
	printa("%@8d %@12d  %-38A %A\n", @reader_holds, @reader_held);
	printf("\nWriters: sleeps\n%8s %12s  %-38s %s\n", "COUNT", "NANOSECONDS", "LOCK", "CALLER");
	printa("%@8d %@12d  %-38A %A\n", @writer_sleeps, @writer_slept);
	printf("\nWriters: holds\n%8s %12s  %-38s %s\n", "COUNT", "NANOSECONDS", "LOCK", "CALLER");
	printa("%@8d %@12d  %-38A %A\n", @writer_holds, @writer_held);
	printf("\nSleeps by their ways, nanoseconds\n");
	printa("%A%k%@d\n", @ways);
}
