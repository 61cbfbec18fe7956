// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

/*
 * The bodies of file.h.
 */

#include <linux/kernel_read_file.h>
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/vmalloc.h>

#include "file.h"

static char *anon_file = DTRACE_ANON_FILE;
module_param(anon_file, charp, 0444);
MODULE_PARM_DESC(anon_file, "File of the anonymous enabling, which dtrace -A writes");

const char *dtrace_anon_path(void)
{
	return anon_file;
}

/*
 * Reads a file into a buffer that dtrace_file_free() frees; returns the size, or a negative errno
 * and no buffer. To security modules the file is firmware: bytes from a file that control what a
 * driver has the kernel do.
 */
ssize_t dtrace_file_read(const char *path, void **buffer, size_t max)
{
	*buffer = NULL;
	return kernel_read_file_from_path(path, 0, buffer, max, NULL, READING_FIRMWARE);
}

void dtrace_file_free(void *buffer)
{
	vfree(buffer);
}
