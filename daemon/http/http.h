/* SPDX-License-Identifier: Apache-2.0 */
/* The HTTP endpoint: GET and HEAD of /healthz, /readyz, /status, /metrics. It reads, and changes nothing.
 *
 * One thread serves all connections. A request has HTTP_REQUEST_S seconds from its first byte, or from the connection,
 * to the end of its answer, however busy the connection is meanwhile. When there are HTTP_CONNECTIONS_MAX connections,
 * a new one takes the place of that which has been at its request the longest. So neither slow nor idle clients,
 * however many, keep a probe from being answered.
 */
#ifndef DAEMON_HTTP_HTTP_H
#define DAEMON_HTTP_HTTP_H

#include "daemon/http/status.h"

enum { HTTP_REQUEST_S = 10, HTTP_CONNECTIONS_MAX = 64 };

struct http;

/* listen  "address:port", an IPv4 or [IPv6] address
 * hosts   http.hosts; outlives the endpoint
 *
 * Returns ERR_CONFIG when the address is not one, or may not be listened on; ERR_SYSTEM when it cannot be, as when
 * another process does.
 */
err_t http_open(const char *listen, const struct config_list *hosts, struct status *status, struct http **out);
void http_close(struct http **h);

#endif
