/* SPDX-License-Identifier: Apache-2.0 */
/* From the times of a query to its spans. Names and attributes are those of OpenTelemetry's conventions for messaging,
 * and `sluice.` attributes of our own.
 *
 * Source: OpenTelemetry Protocol Specification 1.3, "JSON Protobuf Encoding"; Semantic Conventions 1.30, "Kafka"
 */
#include "daemon/tracing/query_spans.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "daemon/http/print/json_put.h"

/* Values of opentelemetry.proto.trace.v1.Span.SpanKind, and of Status.StatusCode. */
enum span_kind { SPAN_INTERNAL = 1, SPAN_PRODUCER = 4, SPAN_CONSUMER = 5 };
enum { STATUS_ERROR = 2 };

/* "send " or "process ", and a topic. */
enum { NAME_BYTES = 16 + TOPIC_NAME_MAX, NUMBER_BYTES = 24 };

/* ---- Attributes ---- */

static void put_attribute(json_t *attributes, const char *key, const char *type, json_t *value)
{
  json_t *attribute = json_object(), *typed = json_object();

  json_put(typed, type, value);
  json_put_text(attribute, "key", key);
  json_put(attribute, "value", typed);
  json_array_append_new(attributes, attribute);
}

static void put_text(json_t *attributes, const char *key, const char *text)
{
  put_attribute(attributes, key, "stringValue", json_string(text));
}

static void put_bool(json_t *attributes, const char *key, bool value)
{
  put_attribute(attributes, key, "boolValue", json_boolean(value));
}

/* 64-bit integers are strings in the JSON of protobuf. */
static json_t *integer_of(int64_t value)
{
  char digits[NUMBER_BYTES];

  snprintf(digits, sizeof digits, "%" PRId64, value);
  return json_string(digits);
}

static void put_integer(json_t *attributes, const char *key, int64_t value)
{
  put_attribute(attributes, key, "intValue", integer_of(value));
}

static json_t *consumer_attributes(const struct query_trace *t, const struct query_spans_source *source)
{
  char partition[NUMBER_BYTES];
  json_t *attributes = json_array();

  snprintf(partition, sizeof partition, "%" PRId32, t->partition);
  put_text(attributes, "messaging.system", "kafka");
  put_text(attributes, "messaging.operation.type", "process");
  put_text(attributes, "messaging.operation.name", "process");
  put_text(attributes, "messaging.destination.name", source->topic);
  put_text(attributes, "messaging.destination.partition.id", partition);
  put_text(attributes, "messaging.consumer.group.name", source->group);
  put_integer(attributes, "messaging.kafka.offset", t->offset);
  if (*t->space)
    put_text(attributes, "sluice.space", t->space);
  if (t->k)
    put_integer(attributes, "sluice.k", t->k);
  return attributes;
}

static void put_answer(json_t *attributes, const struct query_trace *t)
{
  put_text(attributes, "sluice.method", t->method);
  put_integer(attributes, "sluice.generation", t->generation);
  if (t->epoch)
    put_integer(attributes, "sluice.epoch", (int64_t)t->epoch);
  put_integer(attributes, "sluice.hits", (int64_t)t->n_hits);
  put_bool(attributes, "sluice.exact", t->is_exact);
}

static json_t *producer_attributes(const struct query_trace *t)
{
  json_t *attributes = json_array();

  put_text(attributes, "messaging.system", "kafka");
  put_text(attributes, "messaging.operation.type", "send");
  put_text(attributes, "messaging.operation.name", "send");
  put_text(attributes, "messaging.destination.name", t->reply_topic);
  return attributes;
}

/* ---- Spans ---- */

/* An id of zeros would be none. */
static void make_id(char id[SPAN_ID_DIGITS + 1])
{
  uint64_t number;

  do
    arc4random_buf(&number, sizeof number);
  while (number == 0);
  snprintf(id, SPAN_ID_DIGITS + 1, "%016" PRIx64, number);
}

struct interval {
  int64_t from_ns, to_ns; /* by clock_now_ns() */
};

static json_t *make_span(const struct query_trace *t, const char *id, const char *parent, const char *name,
                         enum span_kind kind, struct interval times)
{
  json_t *span = json_object();

  json_put_text(span, "traceId", t->parent.trace_id);
  json_put_text(span, "spanId", id);
  json_put_text(span, "parentSpanId", parent);
  json_put_text(span, "name", name);
  json_put_integer(span, "kind", kind);
  json_put(span, "startTimeUnixNano", integer_of(t->unix_ahead_ns + times.from_ns));
  json_put(span, "endTimeUnixNano", integer_of(t->unix_ahead_ns + times.to_ns));
  return span;
}

static void put_error(json_t *span, json_t *attributes, const char *code, const char *message)
{
  json_t *status = json_object();

  json_put_integer(status, "code", STATUS_ERROR);
  json_put_text(status, "message", message);
  json_put(span, "status", status);
  put_text(attributes, "error.type", code);
}

static json_t *make_root(const struct query_trace *t, const struct query_spans_source *source, const char *id)
{
  char name[NAME_BYTES];
  json_t *attributes = consumer_attributes(t, source);

  snprintf(name, sizeof name, "process %s", source->topic);
  json_t *span =
      make_span(t, id, t->parent.span_id, name, SPAN_CONSUMER, (struct interval){ t->received_ns, t->ended_ns });
  if (*t->method)
    put_answer(attributes, t);
  if (t->error)
    put_error(span, attributes, t->error, t->error_message);
  json_put(span, "attributes", attributes);
  return span;
}

static void add_child(json_t *spans, const struct query_trace *t, const char *root, const char *name,
                      struct interval times)
{
  char id[SPAN_ID_DIGITS + 1];

  make_id(id);
  json_array_append_new(spans, make_span(t, id, root, name, SPAN_INTERNAL, times));
}

static void add_send(json_t *spans, const struct query_trace *t, const char *root)
{
  char id[SPAN_ID_DIGITS + 1], name[NAME_BYTES];
  json_t *attributes = producer_attributes(t);

  make_id(id);
  snprintf(name, sizeof name, "send %s", t->reply_topic);
  json_t *span = make_span(t, id, root, name, SPAN_PRODUCER, (struct interval){ t->sent_ns, t->ended_ns });
  if (!t->is_delivered)
    put_error(span, attributes, "UNDELIVERED", "no broker has taken the reply");
  json_put(span, "attributes", attributes);
  json_array_append_new(spans, span);
}

/* Return when a phase of the query ended: when the next one began, or else with the reply.
 *
 * next_ns  0: there was no next one, because the query was refused or its search failed
 */
static int64_t end_of_phase(int64_t next_ns, const struct query_trace *t)
{
  return next_ns ? next_ns : t->sent_ns ? t->sent_ns : t->ended_ns;
}

static void add_spans(json_t *spans, const struct query_trace *t, const struct query_spans_source *source)
{
  int64_t found_ns = t->searched_us ? t->searched_ns + t->searched_us * CLOCK_NS_PER_US : 0;
  char root[SPAN_ID_DIGITS + 1];

  make_id(root);
  json_array_append_new(spans, make_root(t, source, root));
  if (t->waited_ns)
    add_child(spans, t, root, "wait", (struct interval){ t->received_ns, t->waited_ns });
  if (t->queued_ns)
    add_child(spans, t, root, "queue", (struct interval){ t->queued_ns, end_of_phase(t->searched_ns, t) });
  if (t->searched_ns)
    add_child(spans, t, root, "search", (struct interval){ t->searched_ns, end_of_phase(found_ns, t) });
  if (t->sent_ns)
    add_send(spans, t, root);
}

/* ---- The request ---- */

static json_t *make_resource(const struct query_spans_source *source)
{
  json_t *resource = json_object(), *attributes = json_array();

  put_text(attributes, "service.name", "sluice");
  put_text(attributes, "service.version", SLUICE_VERSION);
  put_text(attributes, "service.instance.id", source->instance);
  json_put(resource, "attributes", attributes);
  return resource;
}

static json_t *make_scope(json_t *spans)
{
  json_t *scoped = json_object(), *scope = json_object();

  json_put_text(scope, "name", "sluice");
  json_put_text(scope, "version", SLUICE_VERSION);
  json_put(scoped, "scope", scope);
  json_put(scoped, "spans", spans);
  return scoped;
}

/* Return an object with a list of one element. */
static json_t *make_list(const char *name, json_t *element)
{
  json_t *object = json_object(), *list = json_array();

  json_array_append_new(list, element);
  json_put(object, name, list);
  return object;
}

char *query_spans_encode(const struct query_trace *list, const struct query_spans_source *source, size_t *n_spans)
{
  json_t *spans = json_array();

  for (const struct query_trace *t = list; t; t = t->next)
    add_spans(spans, t, source);
  *n_spans = json_array_size(spans);
  json_t *of_resource = make_list("scopeSpans", make_scope(spans));
  json_put(of_resource, "resource", make_resource(source));
  json_t *request = make_list("resourceSpans", of_resource);
  char *text = json_dumps(request, JSON_COMPACT);
  json_decref(request);
  return text;
}
