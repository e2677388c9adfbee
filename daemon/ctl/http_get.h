/* SPDX-License-Identifier: Apache-2.0 */
/* Get pages of the daemon over HTTP. One connection is kept open. Thread: one. */
#ifndef DAEMON_CTL_HTTP_GET_H
#define DAEMON_CTL_HTTP_GET_H

#include <jansson.h>
#include <stdbool.h>

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

enum { HTTP_GET_OK = 200, HTTP_GET_NOT_FOUND = 404 };

/* GET a page.
 *
 * path  "/items/gimp"
 * code  HTTP status code
 * body  valid until the next call; a zero byte follows it
 *
 * Returns ERR_SYSTEM with the address and the reason if there is no answer in time.
 */
err_t http_get_page(struct http_get *h, const char *path, long *code, struct span *body);

/* GET the daemon's /status page. The caller owns it and releases it with ctl_json_close(). Returns ERR_SYSTEM with the
 * address if the daemon does not answer, or if the answer is not a status. */
err_t http_get_status(struct http_get *h, json_t **out);

/* GET /readyz.
 *
 * line  what the daemon says, such as why it is not ready; valid until the next call
 *
 * Returns ERR_SYSTEM with the address if the daemon does not answer.
 */
err_t http_get_readyz(struct http_get *h, bool *is_ready, struct span *line);

#endif
