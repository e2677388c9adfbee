/* SPDX-License-Identifier: Apache-2.0 */
/* Get pages of the daemon over HTTP. One connection is kept open. Thread: one. */
#ifndef DAEMON_CTL_HTTP_GET_H
#define DAEMON_CTL_HTTP_GET_H

#include "base/err.h"
#include "base/span.h"

struct http_get;

/* Prepare to get pages; nothing is sent yet.
 *
 * listen  address:port, as in http.listen; an address that stands for all interfaces becomes the loopback address
 *
 * Returns ERR_MEMORY; ERR_SYSTEM.
 */
err_t http_get_open(const char *listen, struct http_get **out);
void http_get_close(struct http_get **h);

/* Return the base of the URLs, such as "http://127.0.0.1:8321". Valid until http_get_close(). */
const char *http_get_base(const struct http_get *h);

/* GET a page.
 *
 * path  "/status"
 * code  HTTP status code
 * body  valid until the next call; a zero byte follows it
 *
 * Returns ERR_SYSTEM with the address and the reason if there is no answer within timeout_ms.
 */
err_t http_get_page(struct http_get *h, const char *path, int timeout_ms, long *code, struct span *body);

#endif
