/* SPDX-License-Identifier: GPL-2.0-only */
/* SPDX-FileCopyrightText: The DTrace for Linux authors */

/*
 * What the arguments of tracepoints and functions mean, where that takes a look into the kernel's structures; places.c
 * holds the bodies. They run in probe context: they load only what the kernel, which is at that very place, keeps alive.
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

/* Priorities: what a change makes of a task's; its present one if the change makes no difference */
int dtrace_prio(const struct task_struct *task);
int dtrace_prio_of_nice(const struct task_struct *task, long nice);
int dtrace_prio_of_attr(const struct task_struct *task, const struct sched_attr *attr);
int dtrace_prio_inherited(const struct task_struct *task, const struct task_struct *donor);

/* Transfers. The layout is userland-lib/dlib/io.d's too. */
struct dtrace_io {
	/* Neither is there where the transfer is one of NFS. */
	const struct bio *bio;
	struct block_device *bdev;
	/* The file's inode, one of its names, and where in it the transfer is; none if it is no file's. */
	struct inode *inode;
	struct dentry *dentry;
	u64 offset;
	/* The first sector of 512 bytes on the device, or in the file of NFS; how many bytes; and how many were not transferred. */
	u64 sector;
	u64 bytes;
	u64 left;
	uintptr_t done;
	/* DTRACE_IO_* */
	u32 flags;
	/* errno */
	int error;
	/* The device as stat(2) has it, in the kernel's form. */
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
