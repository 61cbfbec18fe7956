/*
 * SPDX-FileCopyrightText: The DTrace for Linux authors
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Input and output: requests, devices, files.
 */

#pragma D depends_on library unistd.d

inline int B_BUSY = 0x00000001;
inline int B_DONE = 0x00000002;
inline int B_ERROR = 0x00000004;
inline int B_PAGEIO = 0x00000010;
inline int B_PHYS = 0x00000020;
inline int B_READ = 0x00000040;
inline int B_WRITE = 0x00000100;
inline int B_ASYNC = 0x00000400;

/* A request as the provider io passes it. kmod/helpers/places.h has the same layout. */
typedef struct dtrace_io {
	struct bio *io_bio;
	struct block_device *io_bdev;
	struct inode *io_inode;
	struct dentry *io_dentry;
	uint64_t io_offset;
	uint64_t io_sector;
	uint64_t io_bytes;
	uint64_t io_left;
	uintptr_t io_done;
	uint32_t io_flags;
	int io_error;
	uint32_t io_dev;
} dtrace_io_t;

typedef struct bufinfo {
	int b_flags;		/* B_READ or B_WRITE, B_ASYNC, B_ERROR */
	size_t b_bcount;	/* bytes of the request */
	uint64_t b_addr;	/* address of the request */
	uint64_t b_blkno;	/* first block of 512 bytes on the device */
	uint64_t b_lblkno;	/* the same */
	size_t b_resid;		/* bytes not transferred yet */
	size_t b_bufsize;	/* size of the buffer, bytes */
	uintptr_t b_iodone;	/* function that is called at completion */
	int b_error;		/* error number, or block layer status of a struct bio; 0 if none */
	uint32_t b_edev;	/* the device */
} bufinfo_t;

/*
 * When a bio is remapped from a partition to its disk, bi_sector becomes relative to the disk, but
 * bi_bdev stays that of the partition. Subtract the start of the partition in this case.
 */
inline uint64_t dtrace_sector[struct bio *B] = B->bi_bdev != NULL && B->bi_flags & 1 << BIO_REMAPPED &&
    B->bi_iter.bi_sector >= B->bi_bdev->bd_start_sect ?
    B->bi_iter.bi_sector - B->bi_bdev->bd_start_sect : B->bi_iter.bi_sector;

/*
 * The lowest byte of bi_opf is the operation, which writes if it is odd. Reads are synchronous, and
 * so are requests with REQ_SYNC, REQ_FUA or REQ_PREFLUSH (0x60800), unless they have REQ_RAHEAD
 * (0x80000).
 */
translator bufinfo_t < struct bio *B > {
	b_flags = (B->bi_opf & 1 ? B_WRITE : B_READ) |
	    ((B->bi_opf & 0xff) != 0 && !(B->bi_opf & 0x60800) || B->bi_opf & 0x80000 ? B_ASYNC : 0) |
	    (B->bi_status != 0 ? B_ERROR : 0);
	b_bcount = B->bi_iter.bi_size;
	b_addr = (uint64_t)B;
	b_blkno = dtrace_sector[B];
	b_lblkno = dtrace_sector[B];
	b_resid = B->bi_iter.bi_size;
	b_bufsize = B->bi_iter.bi_size;
	b_iodone = (uintptr_t)B->bi_end_io;
	b_error = B->bi_status;
	b_edev = B->bi_bdev == NULL ? 0 : B->bi_bdev->bd_dev;
};

translator bufinfo_t < dtrace_io_t *I > {
	b_flags = I->io_flags;
	b_bcount = I->io_bytes;
	b_addr = 0;
	b_blkno = I->io_sector;
	b_lblkno = I->io_sector;
	b_resid = I->io_left;
	b_bufsize = I->io_bytes;
	b_iodone = I->io_done;
	b_error = I->io_error;
	b_edev = I->io_dev;
};

typedef struct devinfo {
	int dev_major;		/* major number */
	int dev_minor;		/* minor number */
	int dev_instance;	/* number of the disk within its driver */
	string dev_name;	/* name of the driver, or of the disk */
	string dev_statname;	/* name of the disk or partition in statistics */
	string dev_pathname;	/* path in /dev */
} devinfo_t;

/*
 * If a driver reserves minor numbers for partitions, the number of a disk is its first minor number
 * divided by their number.
 */
inline int dtrace_disk[struct gendisk *D] = D->minors == 0 ? D->first_minor : D->first_minor / D->minors;

translator devinfo_t < struct bio *B > {
	dev_major = B->bi_bdev == NULL ? 0 : B->bi_bdev->bd_dev >> 20;
	dev_minor = B->bi_bdev == NULL ? 0 : B->bi_bdev->bd_dev & 0xfffff;
	dev_instance = B->bi_bdev == NULL ? 0 : dtrace_disk[B->bi_bdev->bd_disk];
	dev_name = B->bi_bdev == NULL ? "nfs" : stringof(B->bi_bdev->bd_disk->disk_name);
	dev_statname = B->bi_bdev == NULL ? "nfs" : stringof((char *)B->bi_bdev->bd_device.kobj.name);
	dev_pathname = B->bi_bdev == NULL ? "<unknown>" :
	    strjoin("/dev/", stringof((char *)B->bi_bdev->bd_device.kobj.name));
};

/*
 * The first driver in the hash chain of a major number; the table has 255 chains. A driver further
 * down in its chain is not found, and the disk's name is used instead.
 */
inline struct blk_major_name *dtrace_driver[uint32_t dev] =
    ((struct blk_major_name **)&`major_names)[(dev >> 20) % 255];

/* Only requests of NFS have no block device. */
translator devinfo_t < dtrace_io_t *I > {
	dev_major = I->io_dev >> 20;
	dev_minor = I->io_dev & 0xfffff;
	dev_instance = I->io_bdev == NULL ? 0 : dtrace_disk[I->io_bdev->bd_disk];
	dev_name = I->io_bdev == NULL ? "nfs" :
	    dtrace_driver[I->io_dev] != NULL && dtrace_driver[I->io_dev]->major == I->io_dev >> 20 ?
	    stringof((char *)dtrace_driver[I->io_dev]->name) :
	    stringof((char *)I->io_bdev->bd_disk->disk_name);
	dev_statname = I->io_bdev == NULL ? "nfs" :
	    stringof((char *)I->io_bdev->bd_device.kobj.name);
	dev_pathname = I->io_bdev == NULL ? "<nfs>" :
	    strjoin("/dev/", stringof((char *)I->io_bdev->bd_device.kobj.name));
};

typedef struct fileinfo {
	string fi_name;		/* last component of the path */
	string fi_dirname;	/* path of its folder; of a request the folder's name */
	string fi_pathname;	/* whole path; not known of a request */
	int64_t fi_offset;	/* offset of the next read or write */
	string fi_fs;		/* type of the file system */
	string fi_mount;	/* last component of the mount point; not known of a request */
	int fi_oflags;		/* flags of open(2) */
} fileinfo_t;

translator fileinfo_t < struct file *F > {
	fi_name = F == NULL ? "<none>" : stringof((char *)F->f_path.dentry->d_name.name);
	fi_dirname = F == NULL ? "<none>" : dirname(d_path(&F->f_path));
	fi_pathname = F == NULL ? "<none>" : d_path(&F->f_path);
	fi_offset = F == NULL ? 0 : F->f_pos;
	fi_fs = F == NULL ? "<none>" : stringof((char *)F->f_inode->i_sb->s_type->name);
	fi_mount = F == NULL ? "<none>" : stringof((char *)((struct mount *)((uintptr_t)F->f_path.mnt -
	    offsetof(struct mount, mnt)))->mnt_mountpoint->d_name.name);
	fi_oflags = F == NULL ? 0 : F->f_flags;
};

/* The block layer does not know the file of a request. */
translator fileinfo_t < struct bio *B > {
	fi_name = "<unknown>";
	fi_dirname = "<unknown>";
	fi_pathname = "<unknown>";
	fi_offset = 0;
	fi_fs = "<unknown>";
	fi_mount = "<unknown>";
	fi_oflags = 0;
};

/*
 * A request has only its file's dentry, thus the names of the file and of its folder. The whole
 * path depends on the mounts of the process that looks.
 */
translator fileinfo_t < dtrace_io_t *I > {
	fi_name = I->io_dentry == NULL ? "<none>" : stringof((char *)I->io_dentry->d_name.name);
	fi_dirname = I->io_dentry == NULL ? "<none>" :
	    stringof((char *)I->io_dentry->d_parent->d_name.name);
	fi_pathname = I->io_dentry == NULL ? "<none>" : "<unknown>";
	fi_offset = I->io_offset;
	fi_fs = I->io_inode == NULL ? "<none>" : stringof((char *)I->io_inode->i_sb->s_type->name);
	fi_mount = I->io_inode == NULL ? "<none>" : "<unknown>";
	fi_oflags = 0;
};

inline fileinfo_t fds[int fd] = xlate <fileinfo_t> (
    fd >= 0 && fd < curthread->files->fdt->max_fds ? curthread->files->fdt->fd[fd] : NULL);

inline int O_ACCMODE = 0x0003;
inline int O_RDONLY = 0x0000;
inline int O_WRONLY = 0x0001;
inline int O_RDWR = 0x0002;
inline int O_CREAT = 0x0040;
inline int O_EXCL = 0x0080;
inline int O_NOCTTY = 0x0100;
inline int O_TRUNC = 0x0200;
inline int O_APPEND = 0x0400;
inline int O_NONBLOCK = 0x0800;
inline int O_NDELAY = 0x0800;
inline int O_DSYNC = 0x1000;
inline int O_DIRECT = 0x4000;
inline int O_LARGEFILE = 0x8000;
inline int O_DIRECTORY = 0x10000;
inline int O_NOFOLLOW = 0x20000;
inline int O_CLOEXEC = 0x80000;
inline int O_SYNC = 0x101000;
inline int O_RSYNC = 0x101000;
