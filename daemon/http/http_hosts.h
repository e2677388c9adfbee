/* SPDX-License-Identifier: Apache-2.0 */
/* Which hosts a request may be addressed to. A web page can have a name of its own resolve to this machine, and so make
 * a browser read from here in its name ("DNS rebinding"); the Host header gives that away. Thread: any. */
#ifndef DAEMON_HTTP_HTTP_HOSTS_H
#define DAEMON_HTTP_HTTP_HOSTS_H

#include "daemon/config/config.h"

struct http_hosts {
  char listen[64]; /* the address, without port and brackets */
  bool is_loopback;
  const struct config_list *names;
};

/* listen  "address:port", an IPv4 or [IPv6] address
 * names   http.hosts; outlives `out`
 */
void http_hosts_init(const char *listen, const struct config_list *names, struct http_hosts *out);

/* Whether a request with this Host header is answered; NULL: it has none, as browsers' always have.
 *
 * Answered are localhost, the listening address, loopback addresses, and the names of http.hosts. A daemon that listens
 * on another address than a loopback one answers to every numeric address, and without http.hosts to every name.
 */
bool http_hosts_serve(const struct http_hosts *h, const char *host);

#endif
