// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

/*
 * A file that cannot be read: `unread serve DIRECTORY` serves DIRECTORY/file and answers no
 * request for its bytes; `unread map FILE` maps a file to execute it, and has all of it
 * populated by the same call.
 */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>
#include <linux/fuse.h>

#define SIZE 65536
#define FILE_NODE 2

static int device;

static void answer(const struct fuse_in_header *in, int error, const void *out, size_t size)
{
	char room[4096];
	struct fuse_out_header head = { .len = sizeof(head) + size, .error = error, .unique = in->unique };

	memcpy(room, &head, sizeof(head));
	memcpy(room + sizeof(head), out, size);
	if (write(device, room, head.len) < 0 && errno != ENOENT)
		perror("answer");
}

static struct fuse_attr attributes(uint64_t node)
{
	return (struct fuse_attr){
		.ino = node, .nlink = 1, .size = node == FILE_NODE ? SIZE : 0,
		.mode = node == FILE_NODE ? S_IFREG | 0755 : S_IFDIR | 0755,
	};
}

static void serve_one(const struct fuse_in_header *in)
{
	struct fuse_init_out begun = { .major = FUSE_KERNEL_VERSION, .minor = FUSE_KERNEL_MINOR_VERSION, .max_write = 4096 };
	struct fuse_entry_out entry = { .nodeid = FILE_NODE, .attr = attributes(FILE_NODE), .entry_valid = 60, .attr_valid = 60 };
	struct fuse_attr_out attr = { .attr_valid = 60, .attr = attributes(in->nodeid) };
	struct fuse_open_out opened = { .fh = 1 };

	switch (in->opcode) {
	case FUSE_INIT:
		return answer(in, 0, &begun, sizeof(begun));
	case FUSE_LOOKUP:
		return answer(in, 0, &entry, sizeof(entry));
	case FUSE_GETATTR:
		return answer(in, 0, &attr, sizeof(attr));
	case FUSE_OPEN:
	case FUSE_OPENDIR:
		return answer(in, 0, &opened, sizeof(opened));
	case FUSE_READ:
	case FUSE_FORGET:
	case FUSE_INTERRUPT:
		return;
	default:
		return answer(in, -ENOSYS, NULL, 0);
	}
}

static int serve(const char *directory)
{
	static char request[1 << 18] __attribute__((aligned(8)));
	char options[100];

	device = open("/dev/fuse", O_RDWR);
	snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other", device);
	if (device < 0 || mount("unread", directory, "fuse", 0, options)) {
		perror(directory);
		return 1;
	}
	while (read(device, request, sizeof(request)) > 0)
		serve_one((struct fuse_in_header *)request);
	return 0;
}

static int map(const char *name)
{
	int file = open(name, O_RDONLY);

	if (file < 0) {
		perror(name);
		return 1;
	}
	mmap(NULL, SIZE, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_POPULATE, file, 0);
	puts("mapped");
	return 0;
}

int main(int argc, char **argv)
{
	if (argc != 3)
		return 2;
	return strcmp(argv[1], "serve") ? map(argv[2]) : serve(argv[2]);
}
