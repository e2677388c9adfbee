/* SPDX-License-Identifier: Apache-2.0 */
/* The check of the Host header, against DNS rebinding: a web page can make its own host name resolve to this machine,
 * and then a browser lets the page read our answers. The Host header shows that name. Thread: any. */
#ifndef DAEMON_HTTP_HTTP_HOSTS_H
#define DAEMON_HTTP_HTTP_HOSTS_H

#include "daemon/config/config.h"

struct http_hosts {
  char listen[64];  /* the listening address, without port and brackets */
  bool is_loopback; /* is the listening address a loopback address? */
  const struct config_list *names;
};

/* listen  "address:port", with an IPv4 or [IPv6] address
 * names   http.hosts; must outlive `out`
 */
void http_hosts_init(const char *listen, const struct config_list *names, struct http_hosts *out);

/* Is a request with this Host header answered?
 *
 * host  NULL: the request has no such header; it is answered, because browsers always send one
 *
 * These hosts are answered: localhost, the listening address, loopback addresses, and those in http.hosts. If the
 * listening address is not a loopback address, every numeric address is answered too. If http.hosts is empty as well,
 * every name is answered.
 */
bool http_hosts_serve(const struct http_hosts *h, const char *host);

/* Is it a host that no web page can have made its own? These are: none at all, numeric addresses, localhost, and
 * those in http.hosts.
 *
 * host  of a request that is answered
 */
bool http_hosts_know(const struct http_hosts *h, const char *host);

#endif
