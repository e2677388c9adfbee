/* SPDX-License-Identifier: Apache-2.0 */
/* One pass over all partitions of the topic; each chunk of the file is written to its place. */
#include "daemon/models/model_fetch.h"

#include <inttypes.h>

#include "base/clock.h"
#include "base/mem.h"
#include "ingest/wire/model_chunk.h"
#include "ingest/readers/topic_reader.h"
#include "store/models/model_file.h"
#include "store/models/model_files.h"

enum { BROKER_TIMEOUT_MS = 2000, POLL_MS = 100, STILL_MS = 30000, POLL_RECORDS = 64 };

/* Files are not searched: little memory will do. Properties of the configuration override these. */
static const struct kafka_property defaults[] = {
  { "queued.min.messages", "64" },
  { "queued.max.messages.kbytes", "32768" },
};

enum chunk { CHUNK_MISSING, CHUNK_MISFIT, CHUNK_THERE };

struct partition {
  int64_t next;
  int64_t end; /* it was read when `next` is here */
};

struct pass {
  struct model_fetch *fetch;
  struct model_file *file;
  struct topic_reader *reader;
  struct partition *partitions; /* [n_partitions] */
  int n_partitions;
  uint64_t mark;   /* of what the topic has: another one after each record */
  uint8_t *chunks; /* [n_chunks] enum chunk */
  uint64_t n_chunks;
  struct topic_record records[POLL_RECORDS];
};

static err_t verify_wanted(const struct model_fetch *f)
{
  if (atomic_load(&f->is_cancelled))
    FAIL(ERR_STOPPING, "model file %s is not wanted any more", f->digest);
  return ERR_OK;
}

/* ---- Opening ---- */

static void pass_fini(struct pass *p)
{
  if (p->reader)
    topic_reader_abandon(&p->reader);
  model_file_close(&p->file);
  mem_free(&p->partitions);
  mem_free(&p->chunks);
}

static err_t open_reader(struct pass *p)
{
  struct kafka_layers layers = kafka_layers_under(defaults, sizeof defaults / sizeof defaults[0], &p->fetch->layers);

  TRY(topic_reader_open_again(&layers, p->fetch->topic, &p->reader));
  TRY(topic_reader_n_partitions(p->reader, BROKER_TIMEOUT_MS, &p->n_partitions));
  return mem_array((size_t)p->n_partitions, sizeof *p->partitions, &p->partitions);
}

static err_t assign(struct pass *p)
{
  for (int32_t i = 0; i < p->n_partitions; i++) {
    struct partition *at = &p->partitions[i];
    TRY(verify_wanted(p->fetch));
    TRY(topic_reader_bounds(p->reader, i, BROKER_TIMEOUT_MS, &at->next, &at->end));
    p->mark = (p->mark * 31 + (uint64_t)at->next) * 31 + (uint64_t)at->end + 1;
    if (at->next < at->end)
      TRY(topic_reader_assign(p->reader, i, at->next));
  }
  return ERR_OK;
}

/* ---- Reading ---- */

static err_t take_chunk(struct pass *p, const struct topic_record *record)
{
  struct model_fetch *f = p->fetch;
  uint64_t index;

  if (!record->has_key || !model_chunk_parse(record->key, f->digest, &index) || index >= p->n_chunks)
    return ERR_OK;
  if (p->chunks[index] == CHUNK_THERE) /* a newer one counts */
    atomic_fetch_sub(&f->n_fetched, model_chunk_size(f->n_bytes, index));
  p->chunks[index] = !record->has_value                                       ? CHUNK_MISSING
                     : record->value.n != model_chunk_size(f->n_bytes, index) ? CHUNK_MISFIT
                                                                              : CHUNK_THERE;
  if (p->chunks[index] != CHUNK_THERE)
    return ERR_OK;
  TRY(model_file_write(p->file, index * MODEL_CHUNK_BYTES, record->value));
  atomic_fetch_add(&f->n_fetched, record->value.n);
  return ERR_OK;
}

static err_t take(struct pass *p, const struct topic_record *record)
{
  struct partition *at = &p->partitions[record->partition];

  at->next = record->is_end ? record->offset : record->offset + 1;
  return record->is_end || record->offset >= at->end ? ERR_OK : take_chunk(p, record);
}

/* A topic that was shortened is not another one: the next fetch reads what it has then. */
static err_t check_events(const struct model_fetch *f, const struct topic_events *events)
{
  err_code_t err = topic_events_verify(events, f->topic);

  if (err == ERR_DISCONTINUITY)
    FAIL(ERR_KAFKA_RETRY, "topic %s was shortened while it was read", f->topic);
  return err;
}

static err_t poll_once(struct pass *p, size_t *n)
{
  struct topic_events events;

  topic_reader_release_all(p->reader);
  topic_reader_poll(p->reader, POLL_RECORDS, POLL_MS, p->records, n, &events);
  for (size_t i = 0; i < *n; i++)
    TRY(take(p, &p->records[i]));
  return check_events(p->fetch, &events);
}

static bool is_read(const struct pass *p)
{
  for (int i = 0; i < p->n_partitions; i++) {
    if (p->partitions[i].next < p->partitions[i].end)
      return false;
  }
  return true;
}

static err_t read_all(struct pass *p)
{
  int64_t moved_ns = clock_now_ns();
  size_t n;

  while (!is_read(p)) {
    TRY(verify_wanted(p->fetch));
    TRY(poll_once(p, &n));
    if (n > 0)
      moved_ns = clock_now_ns();
    if (clock_now_ns() - moved_ns > STILL_MS * CLOCK_NS_PER_MS)
      FAIL(ERR_KAFKA_RETRY, "topic %s cannot be read to its end: nothing came for %d s", p->fetch->topic,
           STILL_MS / 1000);
  }
  return ERR_OK;
}

/* ---- The whole ---- */

static err_t verify_chunks(const struct pass *p)
{
  const struct model_fetch *f = p->fetch;
  uint64_t n_missing = 0, first = 0;

  for (uint64_t i = p->n_chunks; i-- > 0;) {
    if (p->chunks[i] == CHUNK_THERE)
      continue;
    n_missing++;
    first = i;
  }
  if (n_missing && p->chunks[first] == CHUNK_MISFIT)
    FAIL(ERR_MODEL, "topic %s: chunk %s/%" PRIu64 " has not the %zu bytes that it must have: upload the file again",
         f->topic, f->digest, first, model_chunk_size(f->n_bytes, first));
  if (n_missing)
    FAIL(ERR_MODEL,
         "topic %s has not all of model file %s: %" PRIu64 " of %" PRIu64 " chunks are missing, the first is %" PRIu64
         ": upload the file again",
         f->topic, f->digest, n_missing, p->n_chunks, first);
  return ERR_OK;
}

/* Does the topic have other records than when it was last read in vain? It may be large, so it is not read for nothing.
 */
static err_t verify_changed(struct pass *p)
{
  struct model_fetch *f = p->fetch;

  f->is_unchanged = f->read_in_vain && p->mark == f->read_in_vain;
  if (f->is_unchanged)
    FAIL(ERR_MODEL, "topic %s has no more of model file %s than before", f->topic, f->digest);
  return ERR_OK;
}

static err_t read_topic(struct pass *p)
{
  struct model_fetch *f = p->fetch;

  TRY(verify_wanted(f));
  TRY(open_reader(p));
  TRY(assign(p));
  TRY(verify_changed(p));
  TRY(model_file_open(f->directory, f->digest, f->n_bytes, &p->file));
  atomic_store(&f->n_fetched, 0);
  TRY(read_all(p));
  f->read_in_vain = p->mark; /* unless the file turns out to be there */
  return verify_chunks(p);
}

static err_t fetch(struct pass *p)
{
  struct model_fetch *f = p->fetch;

  p->n_chunks = model_chunk_count(f->n_bytes);
  TRY(mem_array(p->n_chunks, sizeof *p->chunks, &p->chunks));
  atomic_store(&f->uses_kafka, true);
  err_code_t err = read_topic(p);
  if (p->reader)
    topic_reader_abandon(&p->reader);
  atomic_store(&f->uses_kafka, false);
  TRY(err);
  return model_file_commit(p->file);
}

err_t model_fetch_run(struct model_fetch *f)
{
  AUTO(pass_fini) struct pass p = { .fetch = f };
  bool is_there;

  TRY(model_files_find(f->directory, f->digest, &is_there));
  return is_there ? ERR_OK : fetch(&p);
}
