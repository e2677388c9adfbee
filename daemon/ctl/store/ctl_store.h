/* SPDX-License-Identifier: Apache-2.0 */
/* What backup, restore and verify share. Thread: one. */
#ifndef DAEMON_CTL_CTL_STORE_H
#define DAEMON_CTL_CTL_STORE_H

#include "daemon/ctl/ctl_command.h"

/* Read the command line: at most one directory.
 *
 * needs_directory  a missing one is an error; else it is NULL then
 *
 * Returns ERR_USAGE. */
err_t ctl_store_parse(int argc, char **argv, bool needs_directory, const char **directory);

/* Get the configured store.path. The caller frees it with mem_free(). */
err_t ctl_store_path(const struct ctl_options *options, char **out);

/* Read every record of a store, and print what is in it. Returns ERR_STORE_CORRUPT; ERR_STORE_IN_USE; ERR_STORE. */
err_t ctl_store_verify(const char *path);

#endif
