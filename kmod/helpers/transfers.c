// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

/*
 * Transfers of block devices and of NFS, as places.h declares them. A bio is reported by value,
 * because its fields change while it is carried out. This object is built without ftrace, because
 * all of it runs in probe context.
 */

#include <linux/bio.h>
#include <linux/blk-mq.h>
#include <linux/blkdev.h>
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/nfs_fs.h>
#include <linux/pagemap.h>
#include <linux/uaccess.h>

#include "places.h"

/* Notes the file of an inode, and one of its dentries if it has any. */
static void dtrace_io_file(struct dtrace_io *io, struct inode *inode, u64 offset)
{
	struct hlist_node *alias;

	if (get_kernel_nofault(alias, &inode->i_dentry.first))
		return;
	io->inode = inode;
	io->dentry = alias ? hlist_entry(alias, struct dentry, d_alias) : NULL;
	io->offset = offset;
}

/*
 * Notes the file that a folio belongs to. The folio may be memory of any kind (that of a direct
 * transfer), so what its mapping points to is read by loads that may fault.
 */
static void dtrace_io_folio(struct dtrace_io *io, const struct bio_vec *bv)
{
	struct folio *folio = page_folio(bv->bv_page);
	struct address_space *mapping;
	struct inode *inode;
	umode_t mode;

	if (folio_test_slab(folio) || folio_test_anon(folio) || folio_test_swapcache(folio))
		return;
	mapping = READ_ONCE(folio->mapping);
	if (!mapping || (unsigned long)mapping & FOLIO_MAPPING_FLAGS)
		return;
	if (get_kernel_nofault(inode, &mapping->host) || !inode || get_kernel_nofault(mode, &inode->i_mode))
		return;
	io->flags |= DTRACE_IO_PAGES;
	if (S_ISREG(mode))
		dtrace_io_file(io, inode, folio_pos(folio) + folio_page_idx(folio, bv->bv_page) * PAGE_SIZE + bv->bv_offset);
}

/*
 * The extent of a bio, also after its size has been counted down to 0. A bio that is completed at
 * once keeps the rest of its iterator; one that is completed in pieces, as by a driver that works
 * on the bio itself, has its iterator moved along its pages. `bytes`: the size that it had; 0: it
 * is the sum of its pages, unless the bio uses the pages of another one.
 */
static struct bvec_iter dtrace_bio_extent(const struct bio *bio, unsigned int bytes)
{
	struct bvec_iter extent = bio->bi_iter;
	unsigned int i, gone = 0;

	if (extent.bi_size || !bio->bi_io_vec)
		return extent;
	/*
	 * As if all were left: without that, the position in the current page could not be
	 * computed.
	 */
	extent.bi_size = bytes ? bytes : UINT_MAX;
	if (bytes)
		return extent;
	for (i = 0; i < bio->bi_vcnt; i++) {
		bytes += bio->bi_io_vec[i].bv_len;
		if (i < extent.bi_idx)
			gone += bio->bi_io_vec[i].bv_len;
		else if (i == extent.bi_idx)
			gone += bio->bi_io_vec[i].bv_len - mp_bvec_iter_len(bio->bi_io_vec, extent);
	}
	return (struct bvec_iter) { .bi_sector = extent.bi_sector - (gone >> SECTOR_SHIFT), .bi_size = bytes };
}

/*
 * The block layer turns a sector of a partition into one of the disk, but leaves the partition in
 * the bio. Returns the sector in the partition, with which the bio was made. A flush without data
 * has no position, and is left at 0.
 */
static sector_t dtrace_bio_sector(const struct bio *bio, sector_t sector)
{
	const struct block_device *bdev = bio->bi_bdev;

	if (!bdev || !bio_flagged(bio, BIO_REMAPPED) || sector < bdev->bd_start_sect)
		return sector;
	return sector - bdev->bd_start_sect;
}

void dtrace_io_of_bio(const struct bio *bio, unsigned int bytes, int error, struct dtrace_io *io)
{
	struct bvec_iter extent = dtrace_bio_extent(bio, bytes);

	*io = (struct dtrace_io) {
		.bio = bio,
		.bdev = bio->bi_bdev,
		.sector = dtrace_bio_sector(bio, extent.bi_sector),
		.bytes = extent.bi_size,
		/* How much was done before it failed is unknown, so nothing counts as done. */
		.left = error ? extent.bi_size : 0,
		.done = (uintptr_t)bio->bi_end_io,
		.flags = op_is_write(bio_op(bio)) ? DTRACE_IO_WRITE : DTRACE_IO_READ,
		.error = error,
		.dev = bio->bi_bdev ? bio->bi_bdev->bd_dev : 0,
	};
	if (!op_is_sync(bio->bi_opf) || bio->bi_opf & REQ_RAHEAD)
		io->flags |= DTRACE_IO_ASYNC;
	if (error)
		io->flags |= DTRACE_IO_ERROR;
	if (extent.bi_size && bio->bi_io_vec && !bio_no_advance_iter(bio)) {
		/* Of one page: several pages in a row may be of several folios. */
		struct bio_vec bv = bvec_iter_bvec(bio->bi_io_vec, extent);

		dtrace_io_folio(io, &bv);
	}
	if (!(io->flags & DTRACE_IO_PAGES))
		io->flags |= DTRACE_IO_DIRECT;
}

/*
 * What NFS requests of its server. Sectors are those of the file; a data server of pNFS may number
 * them otherwise. An unstable write is not waited for, so it is asynchronous.
 */
void dtrace_io_of_nfs(const struct nfs_pgio_header *hdr, struct dtrace_io *io)
{
	bool write = hdr->rw_mode & FMODE_WRITE;

	*io = (struct dtrace_io) {
		.sector = hdr->mds_offset >> SECTOR_SHIFT,
		.bytes = hdr->args.count,
		.flags = (write ? DTRACE_IO_WRITE : DTRACE_IO_READ) | (hdr->dreq ? DTRACE_IO_DIRECT : DTRACE_IO_PAGES),
		.dev = hdr->inode->i_sb->s_dev,
	};
	if (write && hdr->args.stable == NFS_UNSTABLE)
		io->flags |= DTRACE_IO_ASYNC;
	dtrace_io_file(io, hdr->inode, hdr->mds_offset);
}

/* The same when the server has answered, or `task` has failed. */
void dtrace_io_end_nfs(const struct nfs_pgio_header *hdr, const struct rpc_task *task, struct dtrace_io *io)
{
	dtrace_io_of_nfs(hdr, io);
	io->left = io->bytes;
	if (task->tk_status < 0) {
		io->error = -task->tk_status;
		io->flags |= DTRACE_IO_ERROR;
	} else if (hdr->res.count <= io->bytes) {
		io->left -= hdr->res.count;
	}
}

/*
 * Whether the bio's device works by requests: then the bio is split and merged before it is carried
 * out.
 */
bool dtrace_bio_becomes_request(const struct bio *bio)
{
	return bio->bi_bdev && queue_is_mq(bdev_get_queue(bio->bi_bdev));
}

/*
 * The first bio of a request; NULL for a request that a driver or a program has made itself
 * (passthrough).
 */
const struct bio *dtrace_request_bio(const struct request *rq)
{
	return blk_rq_is_passthrough((struct request *)rq) ? NULL : rq->bio;
}

/*
 * Whether the completion of a request, which has a bio, is to be reported again later: it is a step
 * of a write with a flush of the device's cache, and ends only when all steps are done.
 */
bool dtrace_request_goes_on(const struct request *rq)
{
	return rq->rq_flags & RQF_FLUSH_SEQ;
}

const struct bio *dtrace_bio_next(const struct bio *bio)
{
	return bio->bi_next;
}

u32 dtrace_bio_bytes(const struct bio *bio)
{
	return bio->bi_iter.bi_size;
}

int dtrace_bio_error(const struct bio *bio)
{
	return dtrace_block_errno(bio->bi_status);
}

int dtrace_block_errno(u8 status)
{
	return -blk_status_to_errno((__force blk_status_t)status);
}
