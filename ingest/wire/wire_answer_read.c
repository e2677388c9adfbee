/* SPDX-License-Identifier: Apache-2.0 */
/* Decoding the answers of shards. */
#include <math.h>
#include <stdio.h>

#include "base/method.h"
#include "ingest/json/numbers.h"
#include "ingest/wire/message_field.h"
#include "ingest/wire/wire_partial.h"
#include "ingest/wire/wire_value.h"

/* An error has no method. */
static err_t read_method(const char *text, struct method *out)
{
  if (*text && method_parse(span_of_str(text), out) != ERR_OK)
    FAIL(ERR_WIRE, "method: %s", err_message());
  return ERR_OK;
}

static err_t read_attributes(const Sluice__V1__Hit *m, struct region *r, struct hit *out)
{
  TRY(region_array(r, m->n_attributes, sizeof *out->attributes, &out->attributes));
  for (size_t i = 0; i < m->n_attributes; i++) {
    out->attributes[i].name = span_of_str(m->attributes[i]->key);
    TRY(wire_value_read(m->attributes[i]->value, ERR_WIRE, r, &out->attributes[i].value));
  }
  out->n_attributes = m->n_attributes;
  return ERR_OK;
}

/* A merge compares these numbers, and NaN has no place in an order. */
static err_t verify_finite(const struct hit *hit, size_t number)
{
  if (!isfinite(hit->score) || !isfinite(hit->similarity))
    FAIL(ERR_WIRE, "the score of hit %zu is not finite", number);
  if (numbers_find_not_finite(hit->vector.v, hit->vector.n) < hit->vector.n)
    FAIL(ERR_WIRE, "the vector of hit %zu is not finite", number);
  return ERR_OK;
}

static err_t read_hits(const Sluice__V1__Answer *m, struct region *r, struct answer *out)
{
  TRY(region_array(r, m->n_hits, sizeof *out->hits, &out->hits));
  for (size_t i = 0; i < m->n_hits; i++) {
    const Sluice__V1__Hit *hit = m->hits[i];
    out->hits[i] = (struct hit){ .key = span_of(hit->key.data, hit->key.len), .score = hit->score };
    if (message_has(&hit->base, "similarity"))
      out->hits[i].similarity = hit->similarity;
    TRY(wire_value_read(hit->value, ERR_WIRE, r, &out->hits[i].value));
    TRY(read_attributes(hit, r, &out->hits[i]));
    out->hits[i].vector = (struct floats){ hit->vector, hit->n_vector };
    TRY(verify_finite(&out->hits[i], i));
  }
  out->n_hits = m->n_hits;
  return ERR_OK;
}

static struct explanation explanation_of(const Sluice__V1__Explanation *m)
{
  bool has_score = message_has(&m->base, "score");

  return (struct explanation){
    .key = span_of(m->key.data, m->key.len),
    .verdict = (enum verdict)m->verdict,
    .has_score = has_score,
    .score = has_score ? m->score : 0.0f,
    .rank = m->rank,
  };
}

static err_t read_explanations(const Sluice__V1__Answer *m, struct region *r, struct answer *out)
{
  TRY(region_array(r, m->n_explanations, sizeof *out->explanations, &out->explanations));
  for (size_t i = 0; i < m->n_explanations; i++)
    out->explanations[i] = explanation_of(m->explanations[i]);
  out->n_explanations = m->n_explanations;
  return ERR_OK;
}

static err_t read_watermark(const Sluice__V1__Answer *m, struct region *r, struct answer *out)
{
  struct position *positions;

  TRY(region_array(r, m->n_watermark, sizeof *positions, &positions));
  for (size_t i = 0; i < m->n_watermark; i++)
    positions[i] = (struct position){ m->watermark[i]->partition, m->watermark[i]->next };
  out->watermark = positions;
  out->n_watermark = m->n_watermark;
  return ERR_OK;
}

static err_t read_receipt(const Sluice__V1__Receipt *m, struct receipt *out)
{
  if (!m)
    return ERR_OK;
  out->is_exact = m->exact;
  out->has_bound = message_has(&m->base, "bound");
  out->bound = out->has_bound ? m->bound : 0.0f;
  if (isnan(out->bound))
    FAIL(ERR_WIRE, "the bound is not a number");
  return ERR_OK;
}

static void read_counts(const Sluice__V1__Counts *m, struct counts *out)
{
  if (!m)
    return;
  *out = (struct counts){ .items = m->items, .scored = m->scored, .candidates = m->candidates };
  out->has_admitted = message_has(&m->base, "admitted");
  out->admitted = out->has_admitted ? m->admitted : 0;
}

static void read_error(const Sluice__V1__Error *m, struct answer *out)
{
  if (!m)
    return;
  bool is_known = m->code > 0 && (int)m->code <= (int)ANSWER_PARTIAL;
  out->error = is_known ? (enum answer_error)m->code : ANSWER_INTERNAL;
  out->error_message = m->message;
}

err_t wire_decode_answer(struct span value, struct region *r, struct answer *out)
{
  ProtobufCMessage *message = NULL;

  TRY(wire_message_read_ours(value, WIRE_PROTOBUF, &sluice__v1__answer__descriptor, r, &message));
  const Sluice__V1__Answer *m = (const Sluice__V1__Answer *)message;
  *out = (struct answer){ .id = span_of_str(m->id), .space = span_of_str(m->space), .epoch = m->epoch };
  TRY(read_method(m->method, &out->method));
  TRY(read_hits(m, r, out));
  TRY(read_explanations(m, r, out));
  TRY(read_watermark(m, r, out));
  TRY(read_receipt(m->receipt, &out->receipt));
  read_counts(m->counts, &out->counts);
  read_error(m->error, out);
  out->generation = m->generation;
  snprintf(out->model, sizeof out->model, "%s", m->model);
  out->queued_us = m->times ? m->times->queued_us : 0;
  out->searched_us = m->times ? m->times->searched_us : 0;
  out->has_time = message_has(&m->base, "time_unix_ms");
  out->time_unix_ms = out->has_time ? m->time_unix_ms : 0;
  out->is_boosted = message_has(&m->base, "now_unix_ms");
  out->now_unix_ms = out->is_boosted ? m->now_unix_ms : 0;
  return ERR_OK;
}
