/* SPDX-License-Identifier: Apache-2.0 */
/* Read pages of the daemon over HTTP, on one connection. Thread: one. */
#ifndef DAEMON_CTL_HTTP_GET_H
#define DAEMON_CTL_HTTP_GET_H

#include "base/err.h"
#include "base/span.h"

struct http_get;

/* listen  as http.listen has it, address:port; the address of "everywhere" becomes the loopback one */
err_t http_get_open(const char *listen, struct http_get **out);
void http_get_close(struct http_get **h);

/* "http://127.0.0.1:8321", valid while it is open. */
const char *http_get_base(const struct http_get *h);

/* GET a page.
 *
 * path  "/status"
 * code  HTTP's status code
 * body  valid until the next call, followed by a zero byte that does not count
 *
 * Returns ERR_SYSTEM with the address and the reason when there is no answer within timeout_ms.
 */
err_t http_get_page(struct http_get *h, const char *path, int timeout_ms, long *code, struct span *body);

#endif
