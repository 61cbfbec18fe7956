/* SPDX-License-Identifier: GPL-2.0-only */
/* SPDX-FileCopyrightText: The DTrace for Linux authors */

/*
 * The file of the anonymous enabling (INV-24): a module parameter that is a string, which the Rust
 * macro cannot declare, and the function that reads the file.
 */
#ifndef _DTRACE_FILE_H
#define _DTRACE_FILE_H

#include <linux/types.h>

/* Path of the file unless the parameter names another one. */
#define DTRACE_ANON_FILE "/etc/dtrace/anon.dof"

const char *dtrace_anon_path(void);
ssize_t dtrace_file_read(const char *path, void **buffer, size_t max);
void dtrace_file_free(void *buffer);

#endif
