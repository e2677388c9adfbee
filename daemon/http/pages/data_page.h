/* SPDX-License-Identifier: Apache-2.0 */
/* The pages with data: /items/KEY has an item as it is stored, /seen/USER what is kept of a user. Thread: HTTP. */
#ifndef DAEMON_HTTP_DATA_PAGE_H
#define DAEMON_HTTP_DATA_PAGE_H

#include "daemon/http/status.h"

struct data_page {
  unsigned code; /* HTTP status code */
  char *text;    /* JSON if the code is 200, else a line for people; the caller frees it with free(). NULL: no memory */
};

/* May a client see data, by http.data? `local` needs a known host too: the browser of somebody on this machine may ask
 * for a web page that made its own host name resolve to us.
 *
 * fd             of the connection
 * is_host_known  of the request, by http_hosts_know()
 */
bool data_page_is_allowed(const struct status *s, int fd, bool is_host_known);

/* Make the page of a URL. Returns false if the URL is not one of a page with data.
 *
 * url         as it was sent: keys are percent-coded
 * is_allowed  may the client see data?
 */
bool data_page_make(const struct status *s, const char *url, bool is_allowed, struct data_page *out);

#endif
