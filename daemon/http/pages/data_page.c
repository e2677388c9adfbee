/* SPDX-License-Identifier: Apache-2.0 */
/* Items and what users have seen, as JSON. Records are read in short transactions, and their size is bounded, because
 * the thread also answers probes. */
#include "daemon/http/pages/data_page.h"

#include <arpa/inet.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/region.h"
#include "daemon/http/pages/url_key.h"
#include "ingest/json/json_bytes.h"
#include "ingest/wire/wire.h"
#include "store/store.h"

enum { OK = 200, BAD_REQUEST = 400, FORBIDDEN = 403, NOT_FOUND = 404, INTERNAL = 500, ITEM_BYTES_MAX = 1 << 20 };

/* ---- Who may read them ---- */

static bool is_loopback(const struct sockaddr_storage *address)
{
  if (address->ss_family == AF_INET)
    return ntohl(((const struct sockaddr_in *)address)->sin_addr.s_addr) >> 24 == 127;
  if (address->ss_family != AF_INET6)
    return false;
  const struct in6_addr *at = &((const struct sockaddr_in6 *)address)->sin6_addr;
  return IN6_IS_ADDR_LOOPBACK(at) || (IN6_IS_ADDR_V4MAPPED(at) && at->s6_addr[12] == 127);
}

static bool have_same_host(const struct sockaddr_storage *a, const struct sockaddr_storage *b)
{
  if (a->ss_family != b->ss_family)
    return false;
  if (a->ss_family == AF_INET)
    return ((const struct sockaddr_in *)a)->sin_addr.s_addr == ((const struct sockaddr_in *)b)->sin_addr.s_addr;
  return a->ss_family == AF_INET6 &&
         IN6_ARE_ADDR_EQUAL(&((const struct sockaddr_in6 *)a)->sin6_addr, &((const struct sockaddr_in6 *)b)->sin6_addr);
}

/* Is the other end of a connection on this machine? */
static bool is_local(int fd)
{
  struct sockaddr_storage client = { 0 }, own = { 0 };
  socklen_t n_client = sizeof client, n_own = sizeof own;

  if (getpeername(fd, (struct sockaddr *)&client, &n_client) != 0 ||
      getsockname(fd, (struct sockaddr *)&own, &n_own) != 0)
    return false;
  return is_loopback(&client) || have_same_host(&client, &own);
}

bool data_page_is_allowed(const struct status *s, int fd, bool is_host_known)
{
  enum config_data data = s->config->http.data;

  return data == CONFIG_DATA_ALL || (data == CONFIG_DATA_LOCAL && is_host_known && is_local(fd));
}

/* ---- Pages ---- */

static void say(struct data_page *page, unsigned code, const char *format, ...) __attribute__((format(printf, 3, 4)));

static void say(struct data_page *page, unsigned code, const char *format, ...)
{
  va_list args;

  page->code = code;
  va_start(args, format);
  if (vasprintf(&page->text, format, args) < 0)
    page->text = NULL;
  va_end(args);
}

/* Print a value, and release it. The caller frees the text. */
static err_t print(json_t *json, char **out)
{
  *out = json ? json_dumps(json, JSON_ENCODE_ANY | JSON_COMPACT | JSON_PRESERVE_ORDER) : NULL;
  json_decref(json);
  if (!*out)
    FAIL(ERR_MEMORY, "no memory for JSON");
  return ERR_OK;
}

/* The item is a line that `sluicectl load` takes; "record" says which record of the topic changed it last. */
static err_t show_item(const struct status *s, struct span key, struct region *region, struct data_page *page)
{
  AUTO(mem_free) char *name = NULL;
  struct item_change item;
  struct span value;
  bool is_found;

  TRY(store_read_item(s->store, key, ITEM_BYTES_MAX, region, &is_found, &item));
  if (!is_found) {
    say(page, NOT_FOUND, "no item has the key %s\n", log_quote(key));
    return ERR_OK;
  }
  TRY(print(json_bytes_make(key), &name));
  TRY(wire_encode_item(&item, WIRE_JSON, region, &value));
  say(page, OK, "{\"key\":%s,\"value\":%s,\"record\":{\"partition\":%d,\"offset\":%lld,\"timestamp_unix_ms\":%lld}}\n",
      name, (const char *)value.p, item.partition, (long long)item.offset, (long long)item.timestamp_ms);
  return ERR_OK;
}

static err_t show_seen(const struct status *s, struct span user, struct region *region, struct data_page *page)
{
  struct seen_keys read;

  if (!s->seen) {
    say(page, NOT_FOUND, "the daemon reads no seen topic: configure seen.topic\n");
    return ERR_OK;
  }
  TRY(seen_read(s->seen, user, SEEN_WHOLE_LOG, region, &read));
  json_t *items = json_array();
  for (size_t i = 0; i < read.n; i++)
    json_array_append_new(items, json_bytes_make(read.keys[i]));
  page->code = OK;
  return print(json_pack("{s:o,s:o}", "user", json_bytes_make(user), "items", items), &page->text);
}

static const struct {
  const char *prefix;
  err_code_t (*show)(const struct status *s, struct span key, struct region *region, struct data_page *page);
} pages[] = { { "/items/", show_item }, { "/seen/", show_seen } };

static void make(const struct status *s, size_t i, const char *coded, bool is_allowed, struct data_page *page)
{
  AUTO(region_fini) struct region region = { 0 };
  uint8_t key[ITEM_KEY_MAX];
  size_t n;

  if (!is_allowed) {
    say(page, FORBIDDEN, "the daemon's setting http.data does not allow this page%s\n",
        s->config->http.data == CONFIG_DATA_OFF ? ""
                                                : " from another machine, or under a name that is not in http.hosts");
  } else if (!url_key_decode(coded, key, &n)) {
    say(page, BAD_REQUEST, "%s expects 1 to %d bytes, percent-coded\n", pages[i].prefix, ITEM_KEY_MAX);
  } else {
    err_code_t err = pages[i].show(s, span_of(key, n), &region, page);
    if (err != ERR_OK)
      say(page, INTERNAL, "%s\n", err_message());
  }
}

bool data_page_make(const struct status *s, const char *url, bool is_allowed, struct data_page *out)
{
  for (size_t i = 0; i < sizeof pages / sizeof pages[0]; i++) {
    size_t n = strlen(pages[i].prefix);
    if (strncmp(url, pages[i].prefix, n) == 0) {
      make(s, i, url + n, is_allowed, out);
      return true;
    }
  }
  return false;
}
