/* SPDX-License-Identifier: Apache-2.0 */
/* A check of the pages of an LMDB file. LMDB trusts what it reads: a page that the disk has lost makes it abort, loop
 * or read outside the map, and the process ends without saying why. */
#ifndef STORE_PAGES_H
#define STORE_PAGES_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

/* Follow all tables of the newest transaction, and the list of free pages. Each page must be of the kind that its place
 * needs, its nodes must lie within it, and it must be used once. What values contain is not looked at.
 *
 * path          of the directory, for messages
 * fd            of its data.mdb
 * page_bytes    of the file
 * reads_values  look also at the first page of each value that has pages of its own. Those may be most of the file
 *
 * Returns ERR_STORE_CORRUPT with the page at fault; ERR_STORE if the file cannot be mapped; ERR_MEMORY. Nobody may
 * write meanwhile. Blocks: reads the pages of keys and small values. */
err_t pages_check(const char *path, int fd, size_t page_bytes, bool reads_values);

#endif
