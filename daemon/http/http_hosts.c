/* SPDX-License-Identifier: Apache-2.0 */
/* The check of the Host header: strip the port, then compare with addresses and names. */
#include "daemon/http/http_hosts.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { HOST_BYTES = 256 };

/* Copy a host without ":port", the brackets of an IPv6 address and a final dot. Returns false if it is too long. */
static bool strip(const char *text, char out[HOST_BYTES])
{
  const char *end = text + strlen(text);
  const char *colon = strrchr(text, ':');

  if (*text == '[') {
    end = strchr(++text, ']') ? strchr(text, ']') : end;
  } else if (colon && strchr(text, ':') == colon) {
    end = colon;
  }
  if (end - text >= HOST_BYTES)
    return false;
  snprintf(out, HOST_BYTES, "%.*s", (int)(end - text), text);
  size_t n = strlen(out);
  if (n && out[n - 1] == '.')
    out[n - 1] = '\0';
  return true;
}

static bool is_numeric(const char *host, bool *is_loopback)
{
  struct in_addr v4;
  struct in6_addr v6;

  if (inet_pton(AF_INET, host, &v4) == 1) {
    *is_loopback = ntohl(v4.s_addr) >> 24 == IN_LOOPBACKNET;
    return true;
  }
  *is_loopback = inet_pton(AF_INET6, host, &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
  return inet_pton(AF_INET6, host, &v6) == 1;
}

void http_hosts_init(const char *listen, const struct config_list *names, struct http_hosts *out)
{
  char host[HOST_BYTES] = "";

  *out = (struct http_hosts){ .names = names };
  if (strip(listen, host))
    snprintf(out->listen, sizeof out->listen, "%.60s", host);
  is_numeric(out->listen, &out->is_loopback);
}

static bool has_name(const struct http_hosts *h, const char *name)
{
  for (size_t i = 0; i < h->names->n; i++) {
    char known[HOST_BYTES];
    if (strip(h->names->items[i], known) && strcasecmp(name, known) == 0)
      return true;
  }
  return strcasecmp(name, "localhost") == 0;
}

bool http_hosts_serve(const struct http_hosts *h, const char *host)
{
  char name[HOST_BYTES];
  bool is_loopback;

  if (!host)
    return true;
  if (!strip(host, name))
    return false;
  if (is_numeric(name, &is_loopback))
    return is_loopback || !h->is_loopback || strcmp(name, h->listen) == 0 || has_name(h, name);
  return has_name(h, name) || (!h->is_loopback && h->names->n == 0);
}

bool http_hosts_know(const struct http_hosts *h, const char *host)
{
  char name[HOST_BYTES];
  bool is_loopback;

  return !host || (strip(host, name) && (is_numeric(name, &is_loopback) || has_name(h, name)));
}
