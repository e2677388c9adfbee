/* SPDX-License-Identifier: Apache-2.0 */
/* Decoding queries. */
#include "base/log.h"
#include "ingest/message_field.h"
#include "ingest/utf8.h"
#include "ingest/wire_message.h"

/* Is it a topic name that Kafka allows? */
static bool is_topic_name(const char *name)
{
  size_t n = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-");

  return n >= 1 && n <= TOPIC_NAME_MAX && name[n] == '\0' && strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
}

static void take_text(const char *text, size_t most, struct span *out)
{
  struct span whole = span_of_str(text);

  if (whole.n <= most && utf8_check(whole))
    *out = whole;
}

/* Copy the fields that an error answer needs, if they are usable. */
static void identify(const Sluice__V1__Query *query, struct query *out)
{
  take_text(query->id, QUERY_ID_MAX, &out->id);
  take_text(query->space, SPACE_NAME_MAX, &out->space);
  if (is_topic_name(query->reply_topic))
    out->reply_topic = span_of_str(query->reply_topic);
}

static err_t verify_text(const char *field, const char *text, size_t most)
{
  struct span whole = span_of_str(text);

  if (whole.n > most)
    FAIL(ERR_QUERY, "%s: %zu bytes, at most %zu", field, whole.n, most);
  if (!utf8_check(whole))
    FAIL(ERR_QUERY, "%s: %s is not UTF-8", field, log_quote(whole));
  return ERR_OK;
}

static err_t verify_texts(const Sluice__V1__Query *query)
{
  TRY(verify_text("id", query->id, QUERY_ID_MAX));
  TRY(verify_text("space", query->space, SPACE_NAME_MAX));
  TRY(verify_text("method", query->method, QUERY_METHOD_MAX));
  if (*query->reply_topic && !is_topic_name(query->reply_topic))
    FAIL(ERR_QUERY, "reply_topic: %s is not a topic name (1 to %d of a-z A-Z 0-9 . _ -)",
         log_quote(span_of_str(query->reply_topic)), TOPIC_NAME_MAX);
  return ERR_OK;
}

static err_t read_exclude(const Sluice__V1__Query *query, struct region *r, struct query *out)
{
  struct span *keys;

  TRY(region_array(r, query->n_exclude, sizeof *keys, &keys));
  for (size_t i = 0; i < query->n_exclude; i++) {
    keys[i] = span_of(query->exclude[i].data, query->exclude[i].len);
    if (keys[i].n < 1 || keys[i].n > ITEM_KEY_MAX)
      FAIL(ERR_QUERY, "exclude[%zu]: a key has 1 to %d bytes, not %zu", i, ITEM_KEY_MAX, keys[i].n);
  }
  out->exclude = keys;
  out->n_exclude = query->n_exclude;
  return ERR_OK;
}

static err_t read_at_least(const Sluice__V1__Query *query, struct region *r, struct query *out)
{
  struct position *positions;

  TRY(region_array(r, query->n_at_least, sizeof *positions, &positions));
  for (size_t i = 0; i < query->n_at_least; i++) {
    const Sluice__V1__Position *from = query->at_least[i];
    if (from->partition < 0)
      FAIL(ERR_QUERY, "at_least[%zu].partition: %d is negative", i, from->partition);
    if (from->next < 0)
      FAIL(ERR_QUERY, "at_least[%zu].next: %lld is negative", i, (long long)from->next);
    positions[i] = (struct position){ .partition = from->partition, .next = from->next };
  }
  out->at_least = positions;
  out->n_at_least = query->n_at_least;
  return ERR_OK;
}

static err_t read_fields(const Sluice__V1__Query *query, struct region *r, struct query *out)
{
  TRY(verify_texts(query));
  TRY(wire_vector_read(query->vector, "vector", ERR_QUERY, r, &out->vector));
  TRY(wire_vector_read(query->components, "components", ERR_QUERY, r, &out->components));
  TRY(wire_vector_read(query->query_gate, "query_gate", ERR_QUERY, r, &out->query_gate));
  TRY(read_exclude(query, r, out));
  TRY(read_at_least(query, r, out));
  out->method = span_of_str(query->method);
  out->k = query->k;
  out->has_user_id = message_has(&query->base, "user_id");
  out->user_id = out->has_user_id ? query->user_id : 0;
  out->has_deadline = message_has(&query->base, "deadline_unix_ms");
  out->deadline_unix_ms = out->has_deadline ? query->deadline_unix_ms : 0;
  return ERR_OK;
}

static err_t decode(struct span value, enum wire_format format, struct region *r, struct query *out)
{
  struct query identity = { 0 };
  ProtobufCMessage *message = NULL;

  err_code_t err = wire_message_read(value, format, &sluice__v1__query__descriptor, ERR_QUERY, r, &message);
  if (!message)
    return err;

  const Sluice__V1__Query *query = (const Sluice__V1__Query *)message;
  identify(query, &identity);
  struct query whole = identity;
  if (err == ERR_OK)
    err = read_fields(query, r, &whole);
  if (err == ERR_OK)
    *out = whole;
  else if (err == ERR_QUERY || err == ERR_TOO_LARGE)
    *out = identity;
  return err;
}

err_t wire_decode_query(struct span value, enum wire_format format, struct region *r, struct query *out)
{
  struct wire_limit limit = wire_limit_begin(r, value.n);

  err_code_t err = decode(value, format, r, out);
  return wire_limit_end(&limit, err, ERR_QUERY);
}
