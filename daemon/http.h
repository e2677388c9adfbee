/* The HTTP endpoint: GET /healthz, /readyz, /status, /metrics. It reads, and changes nothing. */
#ifndef DAEMON_HTTP_H
#define DAEMON_HTTP_H

#include "daemon/status.h"

struct http;

/* listen  "address:port", an IPv4 or [IPv6] address
 *
 * Returns ERR_CONFIG when the address is not one or cannot be listened on.
 */
err_t http_open(const char *listen, struct status *status, struct http **out);
void http_close(struct http **h);

#endif
