/* SPDX-License-Identifier: Apache-2.0 */
/* The status page of the role merge. Thread: any. */
#ifndef DAEMON_MERGE_MERGE_PAGE_H
#define DAEMON_MERGE_MERGE_PAGE_H

#include <jansson.h>

/* Return the page as HTML, complete without scripts. The caller frees it with free(); NULL: out of memory.
 *
 * root  the fields of /status
 */
char *merge_page_html(json_t *root);

#endif
