/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of the wire format share: random messages, and decoding from blocks of exactly their size. */
#ifndef TESTS_SUPPORT_WIRE_FIXTURE_H
#define TESTS_SUPPORT_WIRE_FIXTURE_H

#include <float.h>
#include <math.h>

#include "ingest/wire/message_field.h"
#include "ingest/json/numbers.h"
#include "ingest/wire/wire.h"
#include "ingest/wire/wire_message.h"
#include "tests/support/dice.h"

enum { ROUNDS = 200 };

static struct region region, scratch;

/* Copy bytes to a block of exactly their size. The sanitizer then sees a read past the end. */
static inline uint8_t *exact_copy(struct span bytes)
{
  uint8_t *copy = malloc(bytes.n ? bytes.n : 1);

  assert_non_null(copy);
  if (bytes.n)
    memcpy(copy, bytes.p, bytes.n);
  return copy;
}

/* Decode from an exact block, then overwrite and free it: the result must borrow nothing from it. */
static inline err_code_t decode_item(struct span value, enum wire_format format, struct item_change *out)
{
  uint8_t *copy = exact_copy(value);
  err_code_t err = wire_decode_item(span_of(copy, value.n), format, &region, out);

  memset(copy, 0xa5, value.n);
  free(copy);
  return err;
}

static inline err_code_t decode_query(struct span value, enum wire_format format, struct query *out)
{
  uint8_t *copy = exact_copy(value);
  err_code_t err = wire_decode_query(span_of(copy, value.n), format, &region, out);

  memset(copy, 0xa5, value.n);
  free(copy);
  return err;
}

static inline void *zeros(size_t n)
{
  void *p;

  assert_int_equal(region_array(&scratch, n, 1, &p), ERR_OK);
  return p;
}

static inline struct span pack(const ProtobufCMessage *message)
{
  size_t n = protobuf_c_message_get_packed_size(message);
  uint8_t *bytes = zeros(n);

  protobuf_c_message_pack(message, bytes);
  return span_of(bytes, n);
}

static inline struct floats roll_floats(struct dice *d)
{
  size_t n = dice_below(d, 3) == 0 ? 0 : 1 + dice_below(d, 70);
  float *v = zeros(n * sizeof *v);

  dice_fill(d, v, n, dice_below(d, 2) ? 1.0f : 1e30f);
  return (struct floats){ v, n };
}

static inline struct span roll_bytes(struct dice *d, size_t most)
{
  size_t n = dice_below(d, most + 1);
  uint8_t *bytes = zeros(n);

  for (size_t i = 0; i < n; i++)
    bytes[i] = (uint8_t)dice_u64(d);
  return span_of(bytes, n);
}

/* Make a text of 1..most bytes, without a zero byte: plain, or with characters of up to four bytes. */
static inline struct span roll_text(struct dice *d, size_t most)
{
  static const char *const characters[] = {
    "a", "Z", "\"", "\\", "\n", " ", "\xc3\xbc", "\xe2\x82\xac", "\xf0\x9f\x90\x9f"
  };
  size_t n = 0, want = 1 + dice_below(d, most);
  char *text = zeros(most + 8);

  while (n < want) {
    const char *c = characters[dice_below(d, sizeof characters / sizeof characters[0])];
    if (n + strlen(c) > most)
      c = "x";
    memcpy(text + n, c, strlen(c));
    n += strlen(c);
  }
  return span_of(text, n);
}

static inline struct item_change roll_item(struct dice *d)
{
  struct item_change change = { .n_parts = dice_below(d, 5) };

  change.parts = zeros(change.n_parts * sizeof *change.parts);
  for (size_t i = 0; i < change.n_parts; i++) {
    struct part *part = &change.parts[i];
    struct span name = roll_text(d, SPACE_NAME_MAX - 1);
    char *unique = zeros(name.n + 2);
    unique[0] = (char)('0' + i);
    memcpy(unique + 1, name.p, name.n);
    part->space = span_of(unique, name.n + 1);
    part->vector = roll_floats(d);
    part->components = roll_floats(d);
    part->item_gate = roll_floats(d);
    part->codes = roll_bytes(d, 40);
  }
  return change;
}

static inline void assert_same_floats(struct floats a, struct floats b)
{
  assert_int_equal(a.n, b.n);
  if (a.n)
    assert_memory_equal(a.v, b.v, a.n * sizeof *a.v);
}

static inline void assert_same_span(struct span a, struct span b)
{
  assert_true(span_equal(a, b));
}

/* Make the protobuf message of a query. */
static inline Sluice__V1__Vector *vector_message(struct floats floats, bool as_data)
{
  Sluice__V1__Vector *vector = zeros(sizeof *vector);

  if (floats.n == 0)
    return NULL;
  sluice__v1__vector__init(vector);
  if (as_data) {
    vector->data = (ProtobufCBinaryData){ floats.n * 4, zeros(floats.n * 4) };
    numbers_encode_f32(floats.v, floats.n, vector->data.data);
  } else {
    vector->values = (float *)floats.v;
    vector->n_values = floats.n;
  }
  return vector;
}

static inline char *text_of(struct span text)
{
  char *copy = zeros(text.n + 1);

  if (text.n)
    memcpy(copy, text.p, text.n);
  return copy;
}

static inline Sluice__V1__Query *query_message(const struct query *from, bool as_data)
{
  Sluice__V1__Query *q = zeros(sizeof *q);

  sluice__v1__query__init(q);
  q->id = text_of(from->id);
  q->space = text_of(from->space);
  q->method = text_of(from->method);
  q->reply_topic = text_of(from->reply_topic);
  q->k = from->k;
  q->vector = vector_message(from->vector, as_data);
  q->components = vector_message(from->components, as_data);
  q->query_gate = vector_message(from->query_gate, as_data);
  q->n_exclude = from->n_exclude;
  q->exclude = zeros(from->n_exclude * sizeof *q->exclude);
  for (size_t i = 0; i < from->n_exclude; i++)
    q->exclude[i] = (ProtobufCBinaryData){ from->exclude[i].n, (uint8_t *)from->exclude[i].p };
  q->n_at_least = from->n_at_least;
  q->at_least = zeros(from->n_at_least * sizeof *q->at_least);
  for (size_t i = 0; i < from->n_at_least; i++) {
    q->at_least[i] = zeros(sizeof **q->at_least);
    sluice__v1__position__init(q->at_least[i]);
    q->at_least[i]->partition = from->at_least[i].partition;
    q->at_least[i]->next = from->at_least[i].next;
  }
  q->exclude_seen_by = (ProtobufCBinaryData){ from->exclude_seen_by.n, (uint8_t *)from->exclude_seen_by.p };
  q->n_at_least_seen = from->n_at_least_seen;
  q->at_least_seen = zeros(from->n_at_least_seen * sizeof *q->at_least_seen);
  for (size_t i = 0; i < from->n_at_least_seen; i++) {
    q->at_least_seen[i] = zeros(sizeof **q->at_least_seen);
    sluice__v1__position__init(q->at_least_seen[i]);
    q->at_least_seen[i]->partition = from->at_least_seen[i].partition;
    q->at_least_seen[i]->next = from->at_least_seen[i].next;
  }
  q->no_wait = from->no_wait;
  q->background = from->is_background;
  q->user_id = from->user_id;
  if (from->has_user_id)
    message_mark(&q->base, "user_id");
  q->deadline_unix_ms = from->deadline_unix_ms;
  if (from->has_deadline)
    message_mark(&q->base, "deadline_unix_ms");
  return q;
}

static inline struct query roll_query(struct dice *d)
{
  struct query q = { .id = roll_text(d, 40), .space = roll_text(d, 20), .method = roll_text(d, 20) };

  q.k = (uint32_t)dice_u64(d) >> dice_below(d, 32);
  q.vector = roll_floats(d);
  q.components = roll_floats(d);
  q.query_gate = roll_floats(d);
  q.n_exclude = dice_below(d, 5);
  q.exclude = zeros(q.n_exclude * sizeof *q.exclude);
  for (size_t i = 0; i < q.n_exclude; i++) {
    q.exclude[i] = dice_below(d, 2) ? roll_text(d, 30) : roll_bytes(d, 30);
    if (q.exclude[i].n == 0)
      q.exclude[i] = span_of_str("x");
  }
  q.n_at_least = dice_below(d, 4);
  q.at_least = zeros(q.n_at_least * sizeof *q.at_least);
  for (size_t i = 0; i < q.n_at_least; i++)
    q.at_least[i] = (struct position){ (int32_t)dice_below(d, 100), (int64_t)(dice_u64(d) >> 1) };
  if (dice_below(d, 2)) {
    q.exclude_seen_by = span_of_str("user \"7\"");
    q.n_at_least_seen = dice_below(d, 4);
  }
  q.at_least_seen = zeros(q.n_at_least_seen * sizeof *q.at_least_seen);
  for (size_t i = 0; i < q.n_at_least_seen; i++)
    q.at_least_seen[i] = (struct position){ (int32_t)dice_below(d, 100), (int64_t)(dice_u64(d) >> 1) };
  q.no_wait = dice_below(d, 2);
  q.is_background = dice_below(d, 2);
  q.has_user_id = dice_below(d, 2);
  q.user_id = q.has_user_id ? (int64_t)dice_u64(d) : 0;
  q.has_deadline = dice_below(d, 2);
  q.deadline_unix_ms = q.has_deadline ? (int64_t)dice_u64(d) : 0;
  if (dice_below(d, 2))
    q.reply_topic = span_of_str("Answers_of.team-7");
  return q;
}

/* Print a query as JSON, field by field. This is the oracle; it does not use the code under test. */
static inline void print_json_text(FILE *f, const char *name, struct span text)
{
  fprintf(f, ",\"%s\":\"", name);
  for (size_t i = 0; i < text.n; i++) {
    if (text.p[i] == '"' || text.p[i] == '\\' || text.p[i] < 0x20)
      fprintf(f, "\\u%04x", text.p[i]);
    else
      fputc(text.p[i], f);
  }
  fputc('"', f);
}

static inline void print_json_floats(FILE *f, const char *name, struct floats floats)
{
  fprintf(f, ",\"%s\":[", name);
  for (size_t i = 0; i < floats.n; i++)
    fprintf(f, "%s%.9g", i ? ", " : "", (double)floats.v[i]);
  fputc(']', f);
}

static inline void print_json_positions(FILE *f, const char *name, const struct position *positions, size_t n)
{
  fprintf(f, ",\"%s\":[", name);
  for (size_t i = 0; i < n; i++)
    fprintf(f, "%s{\"partition\":%d,\"next\":%lld}", i ? "," : "", positions[i].partition,
            (long long)positions[i].next);
  fprintf(f, "]");
}

static inline struct span print_json_query(const struct query *q, bool is_camel)
{
  char *buffer = NULL;
  size_t n = 0;
  FILE *f = open_memstream(&buffer, &n);

  assert_non_null(f);
  fprintf(f, "{\"k\":%u", q->k);
  print_json_text(f, "id", q->id);
  print_json_text(f, "space", q->space);
  print_json_text(f, "method", q->method);
  print_json_text(f, is_camel ? "replyTopic" : "reply_topic", q->reply_topic);
  print_json_floats(f, "vector", q->vector);
  print_json_floats(f, "components", q->components);
  print_json_floats(f, is_camel ? "queryGate" : "query_gate", q->query_gate);
  if (q->has_user_id)
    fprintf(f, is_camel ? ",\"userId\":\"%lld\"" : ",\"user_id\":%lld", (long long)q->user_id);
  if (q->has_deadline)
    fprintf(f, is_camel ? ",\"deadlineUnixMs\":\"%lld\"" : ",\"deadline_unix_ms\":%lld",
            (long long)q->deadline_unix_ms);
  if (q->exclude_seen_by.n)
    print_json_text(f, is_camel ? "excludeSeenBy" : "exclude_seen_by", q->exclude_seen_by);
  fprintf(f, ",\"%s\":%s", is_camel ? "noWait" : "no_wait", q->no_wait ? "true" : "false");
  fprintf(f, ",\"background\":%s", q->is_background ? "true" : "false");
  print_json_positions(f, is_camel ? "atLeast" : "at_least", q->at_least, q->n_at_least);
  print_json_positions(f, is_camel ? "atLeastSeen" : "at_least_seen", q->at_least_seen, q->n_at_least_seen);
  fprintf(f, "}");
  fclose(f);
  struct span text;
  assert_int_equal(region_copy(&scratch, span_of(buffer, n), &text), ERR_OK);
  free(buffer);
  return text;
}

static inline int free_regions(void **state)
{
  (void)state;
  region_fini(&region);
  region_fini(&scratch);
  return 0;
}

#endif
