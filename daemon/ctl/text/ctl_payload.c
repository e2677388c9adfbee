/* SPDX-License-Identifier: Apache-2.0 */
/* What is not a message is shown as it is. */
#include "daemon/ctl/text/ctl_payload.h"

#include "base/region.h"
#include "ingest/json/json_bytes.h"

json_t *ctl_payload_json(struct span value, struct span content_type, enum wire_kind kind)
{
  AUTO(region_fini) struct region region = { 0 };
  enum wire_format format = wire_format_of(value, content_type);
  struct span text;
  json_t *json = NULL;

  if (wire_show(value, format, kind, &region, &text) == ERR_OK)
    json = json_loadb((const char *)text.p, text.n, JSON_ALLOW_NUL, NULL);
  return json ? json : json_bytes_make(value);
}
