/* SPDX-License-Identifier: Apache-2.0 */
/* The headers of replies, and the text of the error in place of a refused one. */
#include "daemon/delivery/reply_message.h"

#include <stdio.h>

size_t reply_message_headers(enum wire_format format, const struct trace_headers *trace, struct sender_header *out)
{
  size_t n = 0;

  out[n++] = (struct sender_header){ "content-type", span_of_str(wire_content_type(format)) };
  for (size_t i = 0; i < TRACE_HEADERS; i++) {
    if (trace->value[i].n)
      out[n++] = (struct sender_header){ trace_header_names[i], trace->value[i] };
  }
  return n;
}

void reply_message_explain(size_t n_bytes, bool is_own_topic, const char *reason, char text[REPLY_REASON_BYTES])
{
  snprintf(text, REPLY_REASON_BYTES, "no broker took the answer of %zu bytes for %s: %s", n_bytes,
           is_own_topic ? "the query's reply_topic" : "the configured topic", reason);
}
