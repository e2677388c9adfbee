/* SPDX-License-Identifier: Apache-2.0 */
/* URLs of keys, and what the pages say. */
#include "daemon/ctl/ctl_data_page.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum { PATH_BYTES = 16 + 3 * ITEM_KEY_MAX };

/* Write the path of a key: every byte but letters and digits percent-coded. */
static void make_path(const char *folder, struct span key, char path[PATH_BYTES])
{
  size_t n = (size_t)snprintf(path, PATH_BYTES, "/%s/", folder);

  for (size_t i = 0; i < key.n; i++) {
    bool is_plain = key.p[i] < 0x80 && isalnum(key.p[i]);
    n += (size_t)snprintf(path + n, PATH_BYTES - n, is_plain ? "%c" : "%%%02X", key.p[i]);
  }
}

err_t ctl_data_page_get(struct ctl_context *ctx, const char *folder, struct span key, bool *is_found, struct span *page)
{
  char path[PATH_BYTES];
  long code;

  if (key.n < 1 || key.n > ITEM_KEY_MAX)
    FAIL(ERR_USAGE, "%s has 1 to %d bytes, not %zu", strcmp(folder, "seen") == 0 ? "a user" : "a key", ITEM_KEY_MAX,
         key.n);
  make_path(folder, key, path);
  TRY(http_get_page(ctx->http, path, &code, page));
  *is_found = code == HTTP_GET_OK;
  if (*is_found || (code == HTTP_GET_NOT_FOUND && strncmp((const char *)page->p, "no item ", 8) == 0))
    return ERR_OK;
  FAIL(ERR_SYSTEM, "%s/%s answered with HTTP status %ld: %.*s", http_get_base(ctx->http), folder, code,
       (int)strcspn((const char *)page->p, "\n"), (const char *)page->p);
}

err_t ctl_data_page_find(struct ctl_context *ctx, struct span key, bool *is_found, struct ctl_item_place *out)
{
  struct span page;

  TRY(ctl_data_page_get(ctx, "items", key, is_found, &page));
  if (!*is_found)
    return ERR_OK;
  AUTO(ctl_json_close) json_t *item = json_loadb((const char *)page.p, page.n, JSON_ALLOW_NUL, NULL);
  const json_t *record = json_object_get(item, "record");
  if (!json_is_object(record))
    FAIL(ERR_SYSTEM, "%s/items did not answer with an item", http_get_base(ctx->http));
  *out = (struct ctl_item_place){
    .partition = (int32_t)json_integer_value(json_object_get(record, "partition")),
    .offset = json_integer_value(json_object_get(record, "offset")),
    .timestamp_ms = json_integer_value(json_object_get(record, "timestamp_unix_ms")),
  };
  return ERR_OK;
}
