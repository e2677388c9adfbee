/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes that are not UTF-8 have no other form in JSON. */
#include "ingest/json/json_bytes.h"

#include "base/region.h"
#include "base/utf8.h"
#include "ingest/json/base64.h"

json_t *json_bytes_make(struct span bytes)
{
  AUTO(region_fini) struct region region = { 0 };
  char *coded;

  if (utf8_is_valid(bytes))
    return json_stringn((const char *)bytes.p, bytes.n);
  return base64_encode(&region, bytes, &coded) == ERR_OK ? json_pack("{s:s}", "base64", coded) : NULL;
}
