/* SPDX-License-Identifier: Apache-2.0 */
/* Records of the partials topic, as protobuf. */
#include "ingest/wire/wire_partial.h"

#include "ingest/wire/message_field.h"
#include "ingest/kafka/trace_headers.h"
#include "ingest/wire/wire_message.h"

/* Field 15, length-delimited. Fields up to 15 have a tag of one byte. */
enum { ANSWER_TAG = 15 << 3 | 2, VARINT_MAX = 10 };

static ProtobufCBinaryData data_of(struct span bytes)
{
  return (ProtobufCBinaryData){ .len = bytes.n, .data = (uint8_t *)(uintptr_t)bytes.p };
}

static err_t copy_text(struct region *r, struct span text, char **out)
{
  struct span copy;

  TRY(region_copy(r, text, &copy));
  *out = (char *)(uintptr_t)copy.p;
  return ERR_OK;
}

static err_t make_trace(const struct partial *from, struct region *r, Sluice__V1__Partial *out)
{
  TRY(region_array(r, from->n_trace, sizeof *out->trace, &out->trace));
  for (size_t i = 0; i < from->n_trace; i++)
    out->trace[i] = data_of(from->trace[i]);
  out->n_trace = from->n_trace;
  return ERR_OK;
}

static void make_optional(const struct partial *from, Sluice__V1__Partial *out)
{
  if (from->has_key) {
    out->key = data_of(from->key);
    message_mark(&out->base, "key");
  }
  if (from->has_deadline) {
    out->left_us = from->left_us;
    message_mark(&out->base, "left_us");
  }
}

err_t wire_encode_partial(const struct partial *partial, struct region *r, struct span *out)
{
  Sluice__V1__Partial message = SLUICE__V1__PARTIAL__INIT;

  message.kind = (Sluice__V1__Partial__Kind)partial->kind;
  message.shard = partial->shard;
  message.of = partial->n_shards;
  message.is_json = partial->is_json;
  message.k = partial->k;
  message.candidates = partial->candidates;
  message.diversity = partial->diversity;
  message.max_per = partial->max_per;
  message.boosts = partial->boosts;
  message.attributes = partial->attributes;
  message.allow_partial = partial->allow_partial;
  message.asked_unix_ms = partial->asked_unix_ms;
  message.answer = data_of(partial->answer);
  make_optional(partial, &message);
  TRY(copy_text(r, partial->model, &message.model));
  TRY(copy_text(r, partial->reply_topic, &message.reply_topic));
  TRY(make_trace(partial, r, &message));
  return wire_message_write(&message.base, WIRE_PROTOBUF, NULL, r, out);
}

static size_t write_varint(uint64_t number, uint8_t *out)
{
  size_t n = 0;

  for (; number >= 0x80; number >>= 7)
    out[n++] = (uint8_t)(number | 0x80);
  out[n++] = (uint8_t)number;
  return n;
}

err_t wire_complete_partial(struct span head, struct span answer, struct region *r, struct span *out)
{
  uint8_t *bytes;
  size_t n = head.n;

  TRY(region_array(r, head.n + 1 + VARINT_MAX + answer.n, 1, &bytes));
  memcpy(bytes, head.p, head.n);
  bytes[n++] = ANSWER_TAG;
  n += write_varint(answer.n, bytes + n);
  memcpy(bytes + n, answer.p, answer.n);
  *out = span_of(bytes, n + answer.n);
  return ERR_OK;
}

static err_t verify_partial(const Sluice__V1__Partial *m)
{
  bool has_shard = m->kind != SLUICE__V1__PARTIAL__KIND__ANSWERED;

  if (m->kind > SLUICE__V1__PARTIAL__KIND__HEARTBEAT)
    FAIL(ERR_WIRE, "kind: %d is unknown", (int)m->kind);
  if (has_shard && (m->of == 0 || m->of > PARTIAL_SHARDS_MAX || m->shard >= m->of))
    FAIL(ERR_WIRE, "shard %u of %u: of is 1 to %d, and shard is less", m->shard, m->of, PARTIAL_SHARDS_MAX);
  if (m->kind == SLUICE__V1__PARTIAL__KIND__PART && m->answer.len == 0)
    FAIL(ERR_WIRE, "the part has no answer");
  if (m->candidates > QUERY_MMR_MAX || !(m->diversity >= 0 && m->diversity <= 1))
    FAIL(ERR_WIRE, "mmr: %u candidates, and a diversity of %g", m->candidates, m->diversity);
  if (m->n_trace > TRACE_HEADERS)
    FAIL(ERR_WIRE, "trace: %zu values, at most %d", m->n_trace, TRACE_HEADERS);
  return ERR_OK;
}

static err_t read_trace(const Sluice__V1__Partial *m, struct region *r, struct partial *out)
{
  struct span *trace;

  TRY(region_array(r, m->n_trace, sizeof *trace, &trace));
  for (size_t i = 0; i < m->n_trace; i++)
    trace[i] = span_of(m->trace[i].data, m->trace[i].len);
  out->trace = trace;
  out->n_trace = m->n_trace;
  return ERR_OK;
}

err_t wire_decode_partial(struct span value, struct region *r, struct partial *out)
{
  ProtobufCMessage *message = NULL;

  TRY(wire_message_read_ours(value, WIRE_PROTOBUF, &sluice__v1__partial__descriptor, r, &message));
  const Sluice__V1__Partial *m = (const Sluice__V1__Partial *)message;
  TRY(verify_partial(m));
  *out = (struct partial){
    .kind = (enum partial_kind)m->kind,
    .shard = m->shard,
    .n_shards = m->of,
    .model = span_of_str(m->model),
    .has_key = message_has(&m->base, "key"),
    .is_json = m->is_json,
    .reply_topic = span_of_str(m->reply_topic),
    .k = m->k,
    .candidates = m->candidates,
    .diversity = m->diversity,
    .max_per = m->max_per,
    .boosts = m->boosts,
    .attributes = m->attributes,
    .has_deadline = message_has(&m->base, "left_us"),
    .allow_partial = m->allow_partial,
    .asked_unix_ms = m->asked_unix_ms,
    .answer = span_of(m->answer.data, m->answer.len),
  };
  if (out->has_key)
    out->key = span_of(m->key.data, m->key.len);
  if (out->has_deadline)
    out->left_us = m->left_us;
  return read_trace(m, r, out);
}
