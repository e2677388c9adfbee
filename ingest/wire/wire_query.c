/* SPDX-License-Identifier: Apache-2.0 */
/* Decoding queries. */
#include <math.h>

#include "base/log.h"
#include "base/utf8.h"
#include "ingest/wire/message_field.h"
#include "ingest/wire/wire_value.h"

/* Is it a topic name that Kafka allows? */
static bool is_topic_name(const char *name)
{
  size_t n = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-");

  return n >= 1 && n <= TOPIC_NAME_MAX && name[n] == '\0' && strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
}

static void take_text(const char *text, size_t most, struct span *out)
{
  struct span whole = span_of_str(text);

  if (whole.n <= most && utf8_is_valid(whole))
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
  if (!utf8_is_valid(whole))
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

/* Read the keys of a field. */
static err_t read_keys(const char *field, const ProtobufCBinaryData *from, size_t n, struct region *r,
                       struct span **out)
{
  struct span *keys;

  TRY(region_array(r, n, sizeof *keys, &keys));
  for (size_t i = 0; i < n; i++) {
    keys[i] = span_of(from[i].data, from[i].len);
    if (keys[i].n < 1 || keys[i].n > ITEM_KEY_MAX)
      FAIL(ERR_QUERY, "%s[%zu]: a key has 1 to %d bytes, not %zu", field, i, ITEM_KEY_MAX, keys[i].n);
  }
  *out = keys;
  return ERR_OK;
}

static err_t read_like(const Sluice__V1__Query *query, struct region *r, struct query *out)
{
  struct span key = span_of(query->like.data, query->like.len);

  if (key.n == 0)
    return ERR_OK;
  if (key.n > ITEM_KEY_MAX)
    FAIL(ERR_QUERY, "like: a key has at most %d bytes, not %zu", ITEM_KEY_MAX, key.n);
  if (query->n_likes > 0)
    FAIL(ERR_QUERY, "likes: there is `like` as well: put its item among these");
  TRY(region_array(r, 1, sizeof *out->likes, &out->likes));
  out->likes[0] = (struct like){ key, 1 };
  out->n_likes = 1;
  return ERR_OK;
}

static err_t read_likes(const Sluice__V1__Query *query, struct region *r, struct query *out)
{
  TRY(region_array(r, query->n_likes, sizeof *out->likes, &out->likes));
  for (size_t i = 0; i < query->n_likes; i++) {
    const Sluice__V1__Like *from = query->likes[i];
    struct like *like = &out->likes[i];
    *like = (struct like){ span_of(from->key.data, from->key.len), 1 };
    if (message_has(&from->base, "weight"))
      like->weight = from->weight;
    if (like->key.n < 1 || like->key.n > ITEM_KEY_MAX)
      FAIL(ERR_QUERY, "likes[%zu].key: a key has 1 to %d bytes, not %zu", i, ITEM_KEY_MAX, like->key.n);
    if (!(fabs(like->weight) >= QUERY_LIKE_WEIGHT_MIN && fabs(like->weight) <= QUERY_LIKE_WEIGHT_MAX))
      FAIL(ERR_QUERY, "likes[%zu].weight: %.15g; it must be from %g to %g in magnitude", i, like->weight,
           QUERY_LIKE_WEIGHT_MIN, QUERY_LIKE_WEIGHT_MAX);
  }
  out->n_likes = query->n_likes;
  return read_like(query, r, out);
}

/* Read the positions of a field. */
static err_t read_positions(const char *field, Sluice__V1__Position *const *from, size_t n, struct region *r,
                            struct position **out)
{
  struct position *positions;

  TRY(region_array(r, n, sizeof *positions, &positions));
  for (size_t i = 0; i < n; i++) {
    if (from[i]->partition < 0)
      FAIL(ERR_QUERY, "%s[%zu].partition: %d is negative", field, i, from[i]->partition);
    if (from[i]->next < 0)
      FAIL(ERR_QUERY, "%s[%zu].next: %lld is negative", field, i, (long long)from[i]->next);
    positions[i] = (struct position){ .partition = from[i]->partition, .next = from[i]->next };
  }
  *out = positions;
  return ERR_OK;
}

static err_t read_seen(const Sluice__V1__Query *query, struct region *r, struct query *out)
{
  out->exclude_seen_by = span_of(query->exclude_seen_by.data, query->exclude_seen_by.len);
  if (out->exclude_seen_by.n > SEEN_USER_MAX)
    FAIL(ERR_QUERY, "exclude_seen_by: a user has at most %d bytes, not %zu", SEEN_USER_MAX, out->exclude_seen_by.n);
  if (out->exclude_seen_by.n == 0 && query->n_at_least_seen > 0)
    FAIL(ERR_QUERY, "at_least_seen: there is no exclude_seen_by that needs it");
  out->n_at_least_seen = query->n_at_least_seen;
  return read_positions("at_least_seen", query->at_least_seen, query->n_at_least_seen, r, &out->at_least_seen);
}

/* Read the parameters [n] of a filter. */
static err_t read_parameters(Sluice__V1__Value *const *from, size_t n, struct region *r, const struct value **out)
{
  struct value *values;

  TRY(region_array(r, n, sizeof *values, &values));
  for (size_t i = 0; i < n; i++) {
    err_code_t err = wire_value_read(from[i], ERR_QUERY, r, &values[i]);
    if (err == ERR_QUERY)
      FAIL(ERR_QUERY, "parameters[%zu]: %s", i, err_message());
    TRY(err);
  }
  *out = values;
  return query_verify_parameters(values, n);
}

static err_t read_filter(const Sluice__V1__Query *query, struct region *r, struct query *out)
{
  TRY(verify_text("filter", query->filter, QUERY_FILTER_MAX));
  TRY(read_parameters(query->parameters, query->n_parameters, r, &out->parameters));
  out->n_parameters = query->n_parameters;
  out->filter = span_of_str(query->filter);
  if (out->filter.n == 0 && out->n_parameters > 0)
    FAIL(ERR_QUERY, "parameters: there is no filter that uses them");
  return ERR_OK;
}

/* The engine verifies the attribute. */
static err_t read_max_per(const Sluice__V1__MaxPer *from, struct query *out)
{
  if (!from)
    return ERR_OK;
  TRY(verify_text("max_per.attribute", from->attribute, ATTRIBUTE_NAME_MAX));
  if (!*from->attribute)
    FAIL(ERR_QUERY, "max_per.attribute: name an attribute of type keyword, integer or bool");
  if (from->n == 0)
    FAIL(ERR_QUERY, "max_per.n is missing, or 0; it must be at least 1");
  out->max_per = (struct max_per){ span_of_str(from->attribute), from->n };
  return ERR_OK;
}

/* The engine verifies the number of candidates. */
static err_t read_mmr(const Sluice__V1__Mmr *from, struct query *out)
{
  if (!from)
    return ERR_OK;
  if (from->diversity == 0)
    FAIL(ERR_QUERY, "mmr.diversity is missing, or 0; it must be above 0, and at most 1");
  if (!(from->diversity > 0 && from->diversity <= 1))
    FAIL(ERR_QUERY, "mmr.diversity: %.15g; it must be above 0, and at most 1", from->diversity);
  out->mmr = (struct mmr){ .diversity = from->diversity, .candidates = from->candidates };
  return ERR_OK;
}

static err_t read_min_score(const Sluice__V1__Query *query, struct query *out)
{
  out->has_min_score = message_has(&query->base, "min_score");
  out->min_score = out->has_min_score ? query->min_score : 0.0f;
  if (!isfinite(out->min_score))
    FAIL(ERR_QUERY, "min_score: it must be a number, and not infinite");
  return ERR_OK;
}

/* The engine verifies the attribute and the filter. */
static err_t read_boost(const Sluice__V1__Boost *from, struct region *r, struct boost *out)
{
  TRY(verify_text("attribute", from->attribute, ATTRIBUTE_NAME_MAX));
  TRY(verify_text("filter", from->filter, QUERY_FILTER_MAX));
  if (!isfinite(from->weight) || fabs(from->weight) > QUERY_BOOST_WEIGHT_MAX)
    FAIL(ERR_QUERY, "weight: %.15g; it must be from %g to %g", from->weight, -QUERY_BOOST_WEIGHT_MAX,
         QUERY_BOOST_WEIGHT_MAX);
  if (!*from->attribute && !*from->filter)
    FAIL(ERR_QUERY, "attribute: name one, or give a filter");
  if (*from->attribute && *from->filter)
    FAIL(ERR_QUERY, "filter: there is an attribute too; give one of them");
  if (from->half_life_ms < 0)
    FAIL(ERR_QUERY, "half_life_ms: %lld; it must be at least 1", (long long)from->half_life_ms);
  if (!*from->filter && from->n_parameters > 0)
    FAIL(ERR_QUERY, "parameters: there is no filter that uses them");
  *out = (struct boost){
    .weight = from->weight,
    .attribute = span_of_str(from->attribute),
    .half_life_ms = from->half_life_ms,
    .filter = span_of_str(from->filter),
    .n_parameters = from->n_parameters,
  };
  return read_parameters(from->parameters, from->n_parameters, r, &out->parameters);
}

static err_t read_boosts(const Sluice__V1__Query *query, struct region *r, struct query *out)
{
  TRY(region_array(r, query->n_boosts, sizeof *out->boosts, &out->boosts));
  for (size_t i = 0; i < query->n_boosts; i++) {
    err_code_t err = read_boost(query->boosts[i], r, &out->boosts[i]);
    if (err == ERR_QUERY)
      FAIL(ERR_QUERY, "boosts[%zu].%s", i, err_message());
    TRY(err);
  }
  out->n_boosts = query->n_boosts;
  out->has_now = message_has(&query->base, "now_unix_ms");
  out->now_unix_ms = out->has_now ? query->now_unix_ms : 0;
  if (out->has_now && out->n_boosts == 0)
    FAIL(ERR_QUERY, "now_unix_ms: there are no boosts that use it");
  if (out->now_unix_ms < 0)
    FAIL(ERR_QUERY, "now_unix_ms: %lld is negative", (long long)out->now_unix_ms);
  return ERR_OK;
}

/* The engine verifies the names. */
static err_t read_attributes(const Sluice__V1__Query *query, struct region *r, struct query *out)
{
  TRY(region_array(r, query->n_attributes, sizeof *out->attributes, &out->attributes));
  for (size_t i = 0; i < query->n_attributes; i++) {
    TRY(verify_text("attributes", query->attributes[i], ATTRIBUTE_NAME_MAX));
    out->attributes[i] = span_of_str(query->attributes[i]);
  }
  out->n_attributes = query->n_attributes;
  return ERR_OK;
}

static err_t read_fields(const Sluice__V1__Query *query, struct region *r, struct query *out)
{
  TRY(verify_texts(query));
  TRY(wire_vector_read(query->vector, "vector", ERR_QUERY, r, &out->vector));
  TRY(wire_vector_read(query->components, "components", ERR_QUERY, r, &out->components));
  TRY(wire_vector_read(query->query_gate, "query_gate", ERR_QUERY, r, &out->query_gate));
  TRY(read_keys("exclude", query->exclude, query->n_exclude, r, &out->exclude));
  out->n_exclude = query->n_exclude;
  TRY(read_keys("explain", query->explain, query->n_explain, r, &out->explain));
  out->n_explain = query->n_explain;
  TRY(read_likes(query, r, out));
  TRY(read_positions("at_least", query->at_least, query->n_at_least, r, &out->at_least));
  out->n_at_least = query->n_at_least;
  TRY(read_seen(query, r, out));
  TRY(read_filter(query, r, out));
  TRY(read_max_per(query->max_per, out));
  TRY(read_mmr(query->mmr, out));
  TRY(read_min_score(query, out));
  TRY(read_boosts(query, r, out));
  TRY(read_attributes(query, r, out));
  out->method = span_of_str(query->method);
  out->k = query->k;
  out->no_wait = query->no_wait;
  out->is_background = query->background;
  out->allow_partial = query->allow_partial;
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
  TRY(wire_verify_value(value));
  struct wire_limit limit = wire_limit_begin(r, value.n);
  err_code_t err = decode(value, format, r, out);
  return wire_limit_end(&limit, err, ERR_QUERY);
}
