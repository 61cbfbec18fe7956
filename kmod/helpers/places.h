/* SPDX-License-Identifier: GPL-2.0-only */
/* SPDX-FileCopyrightText: The DTrace for Linux authors */

/*
 * What arguments of tracepoints and functions mean, if finding that out takes a look into the
 * kernel's structures. places.c and transfers.c hold the bodies. They run in probe context, so they
 * load only what the kernel keeps alive while it is at that point.
 */
#ifndef _DTRACE_PLACES_H
#define _DTRACE_PLACES_H

#include <linux/types.h>

struct bio;
struct block_device;
struct dentry;
struct filename;
struct folio;
struct inode;
struct kernel_siginfo;
struct k_sigaction;
struct nfs_pgio_header;
struct request;
struct rpc_task;
struct sched_attr;
struct task_struct;

/* Tasks */
bool dtrace_task_is_kernel(const struct task_struct *task);
bool dtrace_task_leads(const struct task_struct *task);
int dtrace_task_exit_reason(const struct task_struct *task);
const char *dtrace_filename(const struct filename *filename);

/* Signals */
bool dtrace_signal_info(const struct kernel_siginfo *info, int *signo, int *code);
int dtrace_fatal_signal(void);
uintptr_t dtrace_signal_handler(const struct k_sigaction *action);

/* CPUs */
int dtrace_this_cpu(void);

/* Memory */
u64 dtrace_folio_pages(const struct folio *folio);
bool dtrace_kernel_address(unsigned long addr);

/*
 * Priorities: the priority that a change gives to a task; the present one if the change makes no
 * difference
 */
int dtrace_prio(const struct task_struct *task);
int dtrace_prio_of_nice(const struct task_struct *task, long nice);
int dtrace_prio_of_attr(const struct task_struct *task, const struct sched_attr *attr);
int dtrace_prio_inherited(const struct task_struct *task, const struct task_struct *donor);

/* Transfers. userland-lib/dlib/io.d has the same layout. */
struct dtrace_io {
	/* Both are NULL if NFS makes the transfer. */
	const struct bio *bio;
	struct block_device *bdev;
	/*
	 * Inode of the file, one of its dentries, and the offset in the file at which the transfer
	 * begins. NULL if no file is concerned.
	 */
	struct inode *inode;
	struct dentry *dentry;
	u64 offset;
	/*
	 * First sector of 512 bytes on the device, or in the file for NFS; number of bytes; and
	 * number of bytes that were not transferred.
	 */
	u64 sector;
	u64 bytes;
	u64 left;
	uintptr_t done;
	/* DTRACE_IO_* */
	u32 flags;
	/* errno */
	int error;
	/* The device that stat(2) reports, as a kernel dev_t. */
	u32 dev;
};
#define DTRACE_IO_READ 0x40
#define DTRACE_IO_WRITE 0x100
#define DTRACE_IO_ASYNC 0x400
#define DTRACE_IO_PAGES 0x10
#define DTRACE_IO_DIRECT 0x20
#define DTRACE_IO_ERROR 0x4

void dtrace_io_of_bio(const struct bio *bio, unsigned int bytes, int error, struct dtrace_io *io);
void dtrace_io_of_nfs(const struct nfs_pgio_header *hdr, struct dtrace_io *io);
void dtrace_io_end_nfs(const struct nfs_pgio_header *hdr, const struct rpc_task *task, struct dtrace_io *io);
bool dtrace_bio_becomes_request(const struct bio *bio);
const struct bio *dtrace_request_bio(const struct request *rq);
bool dtrace_request_goes_on(const struct request *rq);
const struct bio *dtrace_bio_next(const struct bio *bio);
u32 dtrace_bio_bytes(const struct bio *bio);
int dtrace_bio_error(const struct bio *bio);
int dtrace_block_errno(u8 status);

#endif
