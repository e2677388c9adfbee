/* SPDX-License-Identifier: Apache-2.0 */
/* The status page: what /status says, for people, with charts of the last ten minutes. Thread: any. */
#ifndef DAEMON_HTTP_PAGE_H
#define DAEMON_HTTP_PAGE_H

#include "daemon/http/status.h"

/* Return the page as HTML, complete without scripts. The caller frees it with free(); NULL: out of memory.
 *
 * shows_data  as in status_json_tree()
 */
char *page_html(struct status *s, bool shows_data);

/* The style sheet, and the script that renews the page. */
extern const char page_css[], page_js[];

#endif
