/* SPDX-License-Identifier: Apache-2.0 */
/* Encoding answers. */
#include <assert.h>
#include <float.h>
#include <math.h>

#include "base/method.h"
#include "base/utf8.h"
#include "ingest/wire/message_field.h"
#include "ingest/wire/wire_value.h"

static_assert((int)ANSWER_BAD_QUERY == (int)SLUICE__V1__ERROR__CODE__BAD_QUERY, "the codes of the schema");
static_assert((int)ANSWER_UNKNOWN_SPACE == (int)SLUICE__V1__ERROR__CODE__UNKNOWN_SPACE, "the codes of the schema");
static_assert((int)ANSWER_UNKNOWN_METHOD == (int)SLUICE__V1__ERROR__CODE__UNKNOWN_METHOD, "the codes of the schema");
static_assert((int)ANSWER_DEADLINE_PASSED == (int)SLUICE__V1__ERROR__CODE__DEADLINE_PASSED, "the codes of the schema");
static_assert((int)ANSWER_NOT_SEEN == (int)SLUICE__V1__ERROR__CODE__NOT_SEEN, "the codes of the schema");
static_assert((int)ANSWER_UNAVAILABLE == (int)SLUICE__V1__ERROR__CODE__UNAVAILABLE, "the codes of the schema");
static_assert((int)ANSWER_INTERNAL == (int)SLUICE__V1__ERROR__CODE__INTERNAL, "the codes of the schema");
static_assert((int)ANSWER_PARTIAL == (int)SLUICE__V1__ERROR__CODE__PARTIAL, "the codes of the schema");
static_assert((int)VERDICT_UNKNOWN == (int)SLUICE__V1__EXPLANATION__VERDICT__UNKNOWN, "the verdicts of the schema");
static_assert((int)VERDICT_NO_ITEM == (int)SLUICE__V1__EXPLANATION__VERDICT__NO_ITEM, "the verdicts of the schema");
static_assert((int)VERDICT_SEEN == (int)SLUICE__V1__EXPLANATION__VERDICT__SEEN, "the verdicts of the schema");
static_assert((int)VERDICT_HIT == (int)SLUICE__V1__EXPLANATION__VERDICT__HIT, "the verdicts of the schema");
static_assert((int)VERDICT_CROWDED_OUT == (int)SLUICE__V1__EXPLANATION__VERDICT__CROWDED_OUT,
              "the verdicts of the schema");
static_assert((int)VERDICT_TOO_LOW == (int)SLUICE__V1__EXPLANATION__VERDICT__TOO_LOW, "the verdicts of the schema");
static_assert((int)VERDICT_MISSED == (int)SLUICE__V1__EXPLANATION__VERDICT__MISSED, "the verdicts of the schema");

/* Fields that JSON shows even if they are 0, because a reader expects them. */
static const char *const always[] = { "hits",        "score",    "exact",   "epoch",      "partition",
                                      "next",        "items",    "scored",  "candidates", "queued_us",
                                      "searched_us", "answered", "verdict", NULL };

/* The messages that an answer is made of. */
struct pieces {
  Sluice__V1__Answer answer;
  Sluice__V1__Receipt receipt;
  Sluice__V1__Counts counts;
  Sluice__V1__Times times;
  Sluice__V1__Parts parts;
  Sluice__V1__Error error;
};

static err_t make_method(const struct answer *answer, struct region *r, Sluice__V1__Answer *out)
{
  TRY(region_array(r, METHOD_TEXT_MAX, 1, &out->method));
  method_print(&answer->method, out->method);
  return ERR_OK;
}

static err_t make_attribute(const struct attribute_value *from, struct region *r,
                            Sluice__V1__Hit__AttributesEntry **out)
{
  Sluice__V1__Hit__AttributesEntry *entry;
  struct span name;

  TRY(region_array(r, 1, sizeof *entry, &entry));
  TRY(region_copy(r, from->name, &name)); /* for the zero byte after it */
  sluice__v1__hit__attributes_entry__init(entry);
  entry->key = (char *)name.p;
  TRY(wire_value_make(&from->value, r, &entry->value));
  *out = entry;
  return ERR_OK;
}

static err_t make_attributes(const struct hit *hit, struct region *r, Sluice__V1__Hit *out)
{
  TRY(region_array(r, hit->n_attributes, sizeof *out->attributes, &out->attributes));
  for (size_t i = 0; i < hit->n_attributes; i++)
    TRY(make_attribute(&hit->attributes[i], r, &out->attributes[i]));
  out->n_attributes = hit->n_attributes;
  return ERR_OK;
}

static err_t make_hits(const struct answer *answer, struct region *r, Sluice__V1__Answer *out)
{
  Sluice__V1__Hit *hits;

  TRY(region_array(r, answer->n_hits, sizeof *hits, &hits));
  TRY(region_array(r, answer->n_hits, sizeof *out->hits, &out->hits));
  for (size_t i = 0; i < answer->n_hits; i++) {
    const struct hit *hit = &answer->hits[i];
    if (!isfinite(hit->score))
      FAIL(ERR_WIRE, "the score of hit %zu is not finite", i);
    sluice__v1__hit__init(&hits[i]);
    hits[i].key = (ProtobufCBinaryData){ .len = hit->key.n, .data = (uint8_t *)hit->key.p };
    hits[i].score = hit->score;
    if (answer->is_boosted) {
      hits[i].similarity = hit->similarity;
      message_mark(&hits[i].base, "similarity");
    }
    if (hit->value.kind != VALUE_NULL)
      TRY(wire_value_make(&hit->value, r, &hits[i].value));
    TRY(make_attributes(hit, r, &hits[i]));
    hits[i].vector = (float *)(uintptr_t)hit->vector.v;
    hits[i].n_vector = hit->vector.n;
    out->hits[i] = &hits[i];
  }
  out->n_hits = answer->n_hits;
  return ERR_OK;
}

static err_t make_explanations(const struct answer *answer, struct region *r, Sluice__V1__Answer *out)
{
  Sluice__V1__Explanation *made;

  TRY(region_array(r, answer->n_explanations, sizeof *made, &made));
  TRY(region_array(r, answer->n_explanations, sizeof *out->explanations, &out->explanations));
  for (size_t i = 0; i < answer->n_explanations; i++) {
    const struct explanation *from = &answer->explanations[i];
    sluice__v1__explanation__init(&made[i]);
    made[i].key = (ProtobufCBinaryData){ .len = from->key.n, .data = (uint8_t *)(uintptr_t)from->key.p };
    made[i].verdict = (Sluice__V1__Explanation__Verdict)from->verdict;
    made[i].rank = from->rank;
    if (from->has_score) {
      made[i].score = from->score;
      message_mark(&made[i].base, "score");
    }
    if (from->verdict == VERDICT_OUTRANKED) {
      made[i].below_last_hit = from->below_last_hit;
      message_mark(&made[i].base, "below_last_hit");
    }
    out->explanations[i] = &made[i];
  }
  out->n_explanations = answer->n_explanations;
  return ERR_OK;
}

static err_t make_likes_missing(const struct answer *answer, struct region *r, Sluice__V1__Answer *out)
{
  TRY(region_array(r, answer->n_likes_missing, sizeof *out->likes_missing, &out->likes_missing));
  for (size_t i = 0; i < answer->n_likes_missing; i++) {
    struct span key = answer->likes_missing[i];
    out->likes_missing[i] = (ProtobufCBinaryData){ .len = key.n, .data = (uint8_t *)(uintptr_t)key.p };
  }
  out->n_likes_missing = answer->n_likes_missing;
  return ERR_OK;
}

static err_t make_watermark(const struct answer *answer, struct region *r, Sluice__V1__Answer *out)
{
  Sluice__V1__Position *positions;

  TRY(region_array(r, answer->n_watermark, sizeof *positions, &positions));
  TRY(region_array(r, answer->n_watermark, sizeof *out->watermark, &out->watermark));
  for (size_t i = 0; i < answer->n_watermark; i++) {
    sluice__v1__position__init(&positions[i]);
    positions[i].partition = answer->watermark[i].partition;
    positions[i].next = answer->watermark[i].next;
    out->watermark[i] = &positions[i];
  }
  out->n_watermark = answer->n_watermark;
  return ERR_OK;
}

/* A bound of infinity is said as the largest number: as true, as scores are finite, and JSON can say it. */
static err_t make_receipt(const struct receipt *from, Sluice__V1__Receipt *out)
{
  out->exact = from->is_exact;
  if (!from->has_bound)
    return ERR_OK;
  if (isnan(from->bound))
    FAIL(ERR_WIRE, "the bound of the receipt is not a number");
  out->bound = fmaxf(-FLT_MAX, fminf(FLT_MAX, from->bound));
  message_mark(&out->base, "bound");
  return ERR_OK;
}

static err_t make_answer(const struct answer *answer, struct region *r, struct pieces *p)
{
  sluice__v1__receipt__init(&p->receipt);
  sluice__v1__counts__init(&p->counts);
  sluice__v1__times__init(&p->times);
  TRY(make_method(answer, r, &p->answer));
  TRY(make_hits(answer, r, &p->answer));
  TRY(make_explanations(answer, r, &p->answer));
  TRY(make_likes_missing(answer, r, &p->answer));
  TRY(make_watermark(answer, r, &p->answer));
  TRY(make_receipt(&answer->receipt, &p->receipt));
  p->counts.items = answer->counts.items;
  p->counts.scored = answer->counts.scored;
  p->counts.candidates = answer->counts.candidates;
  if (answer->counts.has_admitted) {
    p->counts.admitted = answer->counts.admitted;
    message_mark(&p->counts.base, "admitted");
  }
  p->times.queued_us = answer->queued_us;
  p->times.searched_us = answer->searched_us;
  if (answer->is_merged) {
    p->times.merged_us = answer->merged_us;
    message_mark(&p->times.base, "merged_us");
  }
  p->answer.epoch = answer->epoch;
  p->answer.generation = answer->generation;
  p->answer.model = (char *)(uintptr_t)answer->model;
  if (answer->has_time) {
    p->answer.time_unix_ms = answer->time_unix_ms;
    message_mark(&p->answer.base, "time_unix_ms");
  }
  if (answer->is_boosted) {
    p->answer.now_unix_ms = answer->now_unix_ms;
    message_mark(&p->answer.base, "now_unix_ms");
  }
  p->answer.receipt = &p->receipt;
  p->answer.counts = &p->counts;
  p->answer.times = &p->times;
  return ERR_OK;
}

/* Say which shards the answer or the error comes from. */
static void make_parts(const struct answer *answer, struct pieces *p)
{
  if (!answer->is_merged)
    return;
  sluice__v1__parts__init(&p->parts);
  p->parts.answered = answer->n_parts;
  p->parts.of = answer->n_shards;
  p->answer.parts = &p->parts;
}

static err_t make_error(const struct answer *answer, struct region *r, struct pieces *p)
{
  const char *text = answer->error_message ? answer->error_message : "";

  sluice__v1__error__init(&p->error);
  TRY(utf8_mend(r, span_of_str(text), &p->error.message)); /* the text may have been cut inside a character */
  p->error.code = (Sluice__V1__Error__Code)answer->error;
  p->answer.error = &p->error;
  return ERR_OK;
}

err_t wire_encode_answer(const struct answer *answer, enum wire_format format, struct region *r, struct span *out)
{
  bool is_error = answer->error != ANSWER_OK;
  struct pieces p;

  sluice__v1__answer__init(&p.answer);
  TRY(utf8_mend(r, answer->id, &p.answer.id));
  TRY(utf8_mend(r, answer->space, &p.answer.space));
  make_parts(answer, &p);
  if (is_error)
    TRY(make_error(answer, r, &p));
  else
    TRY(make_answer(answer, r, &p));
  return wire_message_write(&p.answer.base, format, is_error ? NULL : always, r, out);
}
