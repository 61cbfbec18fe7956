/*
 * SPDX-FileCopyrightText: The DTrace for Linux authors
 * SPDX-License-Identifier: GPL-2.0-only
 *
 * Input and output: transfers, devices, files.
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

/* A transfer as the provider io tells of it: kmod/bindings/places.h has the same layout. */
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
	size_t b_bcount;	/* bytes to transfer */
	uint64_t b_addr;	/* address of the request */
	uint64_t b_blkno;	/* first block of 512 bytes on the device */
	uint64_t b_lblkno;	/* the same */
	size_t b_resid;		/* bytes not transferred yet */
	size_t b_bufsize;	/* bytes of the buffer */
	uintptr_t b_iodone;	/* what is called in the end */
	int b_error;		/* an errno, of a struct bio the block layer's status; 0 if all is well */
	uint32_t b_edev;	/* the device */
} bufinfo_t;

/* What is on a partition the block layer makes a place on the disk, but leaves the bio the partition's. */
inline uint64_t dtrace_sector[struct bio *B] = B->bi_bdev != NULL && B->bi_flags & 1 << BIO_REMAPPED &&
    B->bi_iter.bi_sector >= B->bi_bdev->bd_start_sect ?
    B->bi_iter.bi_sector - B->bi_bdev->bd_start_sect : B->bi_iter.bi_sector;

/*
 * bi_opf: the lowest byte is the operation, which writes if it is odd. Somebody waits for reads, and for what has REQ_SYNC, REQ_FUA
 * or REQ_PREFLUSH (0x60800), but not if it is REQ_RAHEAD (0x80000).
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
	string dev_statname;	/* name of the disk or partition as statistics call it */
	string dev_pathname;	/* its file in /dev */
} devinfo_t;

/* The disks of a driver that keeps minor numbers for partitions are numbered by the first of theirs. */
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

/* The drivers of the first 255 major numbers; numbers above hang behind those, and are named by their disk. */
inline struct blk_major_name *dtrace_driver[uint32_t dev] =
    ((struct blk_major_name **)&`major_names)[(dev >> 20) % 255];

/* What no block device carries is NFS'. */
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
	string fi_name;		/* last part of the path */
	string fi_dirname;	/* path of the folder that holds it; of a transfer's file its name */
	string fi_pathname;	/* the whole path; of a transfer's file not known */
	int64_t fi_offset;	/* where the next read or write starts */
	string fi_fs;		/* type of the file system */
	string fi_mount;	/* last part of the path of the folder it is mounted on; of a transfer's file not known */
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

/* The file that a transfer belongs to is not known at the block layer. */
translator fileinfo_t < struct bio *B > {
	fi_name = "<unknown>";
	fi_dirname = "<unknown>";
	fi_pathname = "<unknown>";
	fi_offset = 0;
	fi_fs = "<unknown>";
	fi_mount = "<unknown>";
	fi_oflags = 0;
};

/* A file is known by its folder and its name there; where that folder is seen depends on who looks. */
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
