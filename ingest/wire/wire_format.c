/* SPDX-License-Identifier: Apache-2.0 */
/* The format of a value: a header says it, or the first byte. */
#include <strings.h>

#include "ingest/wire/wire.h"

static const char json_type[] = "application/json";
static const char protobuf_type[] = "application/x-protobuf";

/* Is the content type `name`? Ignores case and parameters such as "; charset=utf-8". */
static bool is_type(struct span content_type, const char *name)
{
  size_t n = strlen(name);

  if (content_type.n < n || strncasecmp((const char *)content_type.p, name, n) != 0)
    return false;
  return content_type.n == n || content_type.p[n] == ';' || content_type.p[n] == ' ';
}

enum wire_format wire_format_of(struct span value, struct span content_type)
{
  if (is_type(content_type, json_type))
    return WIRE_JSON;
  if (is_type(content_type, protobuf_type) || is_type(content_type, "application/protobuf"))
    return WIRE_PROTOBUF;
  return value.n > 0 && value.p[0] == '{' ? WIRE_JSON : WIRE_PROTOBUF; /* no protobuf message starts with this byte */
}

const char *wire_content_type(enum wire_format format)
{
  return format == WIRE_JSON ? json_type : protobuf_type;
}
