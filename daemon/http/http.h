/* SPDX-License-Identifier: Apache-2.0 */
/* The HTTP endpoint: GET and HEAD of /healthz, /readyz, /status, /metrics, the pages of data_page.h, and
 * /try. It changes nothing in the daemon.
 *
 * One thread serves all connections. A request must be read and answered within HTTP_REQUEST_S seconds, counted from
 * the opening of the connection or from the previous answer. Otherwise the connection is closed, even if it is active.
 * When there are more than HTTP_CONNECTIONS_MAX connections, the one with the oldest request is closed. So slow or idle
 * clients cannot keep a probe from being answered, however many there are.
 */
#ifndef DAEMON_HTTP_HTTP_H
#define DAEMON_HTTP_HTTP_H

#include "daemon/http/status.h"

enum { HTTP_REQUEST_S = 10, HTTP_CONNECTIONS_MAX = 64 };

struct http;

/* Listen, and start the thread.
 *
 * listen  "address:port", with an IPv4 or [IPv6] address
 * hosts   http.hosts; must outlive the endpoint
 * status  what the endpoint shows; must outlive the endpoint
 *
 * Returns ERR_CONFIG when the address is malformed or not permitted; ERR_SYSTEM when listening fails otherwise, for
 * instance because another process uses the port.
 */
err_t http_open(const char *listen, const struct config_list *hosts, struct status *status, struct http **out);
void http_close(struct http **h);

#endif
