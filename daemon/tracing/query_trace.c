/* SPDX-License-Identifier: Apache-2.0 */
/* Copying texts: as much as fits, and as JSON can have. */
#include "daemon/tracing/query_trace.h"

#include "base/clock.h"
#include "base/size.h"
#include "base/utf8.h"

static void copy_text(struct span text, char *out, size_t max)
{
  size_t n = utf8_prefix(span_of(text.p, size_min(text.n, max)));

  if (n)
    memcpy(out, text.p, n);
  out[n] = '\0';
}

void query_trace_note_error(struct query_trace *t, const char *code, const char *message)
{
  if (!t)
    return;
  t->error = code;
  copy_text(span_of_str(message), t->error_message, QUERY_TRACE_MESSAGE_MAX);
}

void query_trace_note_answer(struct query_trace *t, const struct query *query, const struct answer *answer)
{
  if (!t)
    return;
  copy_text(query->space, t->space, SPACE_NAME_MAX);
  t->k = query->k;
  if (answer->error) {
    query_trace_note_error(t, query_error_words[answer->error], answer->error_message);
    return;
  }
  method_print(&answer->method, t->method);
  t->generation = answer->generation;
  t->epoch = answer->epoch;
  t->n_hits = answer->n_hits;
  t->searched_us = answer->searched_us;
  t->is_exact = answer->receipt.is_exact;
}

void query_trace_note_sent(struct query_trace *t, const char *topic)
{
  if (!t)
    return;
  if (!t->sent_ns)
    t->sent_ns = clock_now_ns();
  copy_text(span_of_str(topic), t->reply_topic, TOPIC_NAME_MAX);
}
