/* SPDX-License-Identifier: Apache-2.0 */
/* From the control topic to the store and the state; then the work. */
#include "daemon/models/models.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "daemon/config/config_shard.h"
#include "daemon/models/model_rows.h"
#include "daemon/models/model_shadows.h"
#include "daemon/models/model_switching.h"
#include "daemon/models/models_topic.h"
#include "daemon/topic/letter_window.h"
#include "ingest/wire/model_record.h"

enum { POLL_RECORDS = 64 };

struct models {
  struct models_context with;
  struct models_topic topic;
  struct model_state state;
  struct model_work work;
  struct models_report report;
  struct shadow_board shadows;
  struct switch_board switches;
  bool has_position;
  struct store_position position; /* after the records that were taken; the store may stand before it */
  struct letter_window letters;   /* of records that make no sense */
  struct topic_record records[POLL_RECORDS];
  struct model_change changes[POLL_RECORDS]; /* what the records say that make sense */
  size_t n_changes;
  struct store_model_record rows[MODEL_ROWS_PER_RECORD * POLL_RECORDS]; /* what to store of them */
  size_t n_rows;
  const struct topic_record *senseless[POLL_RECORDS]; /* the other records */
  size_t n_senseless;
  struct region region;
  _Atomic bool has_caught_up;
  _Atomic bool lacks_parts;
};

/* ---- What the store has ---- */

static err_t restore_marks(struct models *m, const struct model_rows *rows)
{
  struct space_name name;

  for (size_t i = 0; i < rows->n; i++) {
    if (model_rows_is_mark(&rows->at[i], &name))
      TRY(model_work_note_removed(&m->work, name.space, name.generation));
  }
  return ERR_OK;
}

/* The work begins with what the engine has, and what the state says about it. */
static err_t restore(struct models *m)
{
  struct model_rows rows;

  TRY(model_rows_read(m->with.store, &m->region, &m->state, &rows));
  m->has_position = rows.has_position;
  m->position = rows.position;
  TRY(model_work_init(m->with.config, m->with.engine, m->with.store, &m->state, &m->work));
  m->work.stand_back = m->with.stand_back;
  m->work.switches = models_switches(m);
  TRY(restore_marks(m, &rows));
  region_reset(&m->region);
  return ERR_OK;
}

/* ---- Where the store stands ---- */

/* Return the position to store when the topic was read up to this one. It stays before a record whose dead letter no
 * broker has yet. So a start may take records again: then the newest of each key counts again. */
static const struct store_position *position_to_store(const struct models *m, const struct store_position *read)
{
  const struct store_position *hold = letter_window_hold(&m->letters, read->at.partition);

  return hold ? hold : read;
}

/* Let the stored position follow the letters. On a full disk it does so later, with the next record or letter. */
static err_t note_letters(struct models *m)
{
  if (!letter_window_settle(&m->letters))
    return ERR_OK;
  err_code_t err = store_models_put(m->with.store, NULL, 0, position_to_store(m, &m->position));
  return err == ERR_STORE_FULL ? ERR_OK : err;
}

/* ---- What the topic has ---- */

static void refuse(struct models *m, const struct topic_record *record, err_code_t err)
{
  log_error("model_record_refused", "offset=%" PRId64 " key=%s reason=%s", record->offset, log_quote(record->key),
            log_failure());
  models_report_lock(&m->report);
  m->report.n_refused++;
  snprintf(m->report.refused, sizeof m->report.refused, "offset %" PRId64 ", key %s: %s", record->offset,
           log_quote(record->key), err_message());
  models_report_unlock(&m->report);
  if (!letter_window_send(&m->letters, m->with.delivery, m->with.config->catalogue.dead_letter_topic, record,
                          m->topic.followed.name, err))
    counters_add(&m->with.counters->dead_letters_lost, 1);
}

static err_t decode(struct models *m, const struct topic_record *record, struct model_change *out)
{
  if (!record->has_key)
    FAIL(ERR_ITEM, "a control record has no key");
  if (record->has_value && record->value.n > STORE_MODEL_VALUE_MAX)
    FAIL(ERR_ITEM, "the value has %zu bytes, more than the limit of %d", record->value.n, STORE_MODEL_VALUE_MAX);
  return model_record_decode(record->key, record->has_value, record->value, &m->region, out);
}

/* Decode the records, and part those that make sense from the others. */
static err_t decode_all(struct models *m, size_t n_records)
{
  m->n_changes = m->n_rows = m->n_senseless = 0;
  for (size_t i = 0; i < n_records; i++) {
    const struct topic_record *record = &m->records[i];
    struct model_change *change = &m->changes[m->n_changes];
    err_code_t err = decode(m, record, change);
    if (err_class(err) == ERR_CLASS_REJECT) {
      m->senseless[m->n_senseless++] = record;
      continue;
    }
    TRY(err);
    m->n_changes++;
    const struct store_model_record row = { record->key, record->has_value, record->value };
    TRY(model_rows_append(&row, change, &m->state, &m->region, m->rows, &m->n_rows));
  }
  return ERR_OK;
}

/* Refuse the records that make no sense, once the others are stored: on a full disk all are read again. They are
 * decoded once more, for the reason. */
static void refuse_senseless(struct models *m)
{
  struct model_change change;

  for (size_t i = 0; i < m->n_senseless; i++)
    refuse(m, m->senseless[i], decode(m, m->senseless[i], &change));
}

/* Store the records that make sense. The position does not pass the first one that makes none: its letter comes later.
 */
static err_t store_rows(struct models *m, const struct store_position *read)
{
  struct store_position next = m->n_senseless > 0 ? topic_position_before(m->senseless[0]) : *read;

  if (m->topic.is_another_one) /* the letters are of the former one */
    letter_window_forget(&m->letters);
  return store_models_put(m->with.store, m->rows, m->n_rows, position_to_store(m, &next));
}

/* Store first: what is done must not be forgotten by a crash. */
static err_t take(struct models *m, size_t n_records)
{
  const struct store_position *position = models_topic_position(&m->topic);

  TRY(decode_all(m, n_records));
  TRY(store_rows(m, position));
  m->position = *position;
  m->has_position = true;
  m->topic.is_another_one = false;
  refuse_senseless(m);
  for (size_t i = 0; i < m->n_changes; i++)
    TRY(model_state_apply(&m->state, &m->changes[i]));
  log_info("model_records", "records=%zu next=%" PRId64, m->n_changes, m->position.at.next);
  return ERR_OK;
}

static err_t read_topic(struct models *m)
{
  size_t n;

  TRY(note_letters(m));
  region_reset(&m->region);
  TRY(models_topic_poll(&m->topic, m->has_position ? &m->position : NULL, 0, POLL_RECORDS, m->records, &n));
  if (n > 0) {
    err_code_t err = take(m, n);
    if (err_class(err) == ERR_CLASS_RETRY) /* a full disk: they are read again */
      return models_topic_wait(&m->topic, err);
    TRY(err);
  }
  if (m->topic.has_caught_up)
    atomic_store(&m->has_caught_up, true);
  return ERR_OK;
}

/* ---- Steps ---- */

/* The comparisons first: who sees a generation in another phase sees what that means for them. */
static err_t report(struct models *m)
{
  TRY(model_shadows_list(&m->work, &m->shadows));
  models_report_lock(&m->report);
  err_code_t err = models_report_copy(&m->report, &m->work);
  m->report.next = m->has_position ? m->position.at.next : -1;
  snprintf(m->report.problem, sizeof m->report.problem, "%s", m->topic.problem);
  models_report_unlock(&m->report);
  atomic_store(&m->lacks_parts, model_switching_lacks_parts(&m->work));
  return err;
}

err_t models_step(struct models *m, bool may_fill, bool *is_busy)
{
  const struct model_entry *removed;

  TRY(read_topic(m));
  TRY(model_work_step(&m->work, may_fill, is_busy, &removed));
  if (removed && m->has_position)
    TRY(model_rows_put_mark(m->with.store, removed->name, position_to_store(m, &m->position)));
  return report(m);
}

const struct model_state *models_state(const struct models *m)
{
  return &m->state;
}

bool models_have_caught_up(const struct models *m)
{
  return atomic_load(&m->has_caught_up);
}

bool models_lack_parts(const struct models *m)
{
  return atomic_load(&m->lacks_parts);
}

bool models_are_loading(const struct models *m)
{
  return model_work_is_loading(&m->work);
}

void models_note_loading(struct models *m)
{
  model_work_note_loading(&m->work);
}

void models_note_unusable(struct models *m, struct span part, struct span key)
{
  model_work_note_unusable(&m->work, part, key);
}

void models_note_refused(struct models *m, struct span part, struct span key)
{
  model_work_note_refused(&m->work, part, key);
}

err_t models_note_loaded(struct models *m)
{
  TRY(model_work_note_loaded(&m->work));
  return report(m);
}

bool models_can_wait(const struct models *m, const struct item_change *changes, size_t n)
{
  for (size_t i = 0; i < n; i++) {
    if (!model_work_can_wait(&m->work, &changes[i]))
      return false;
  }
  return true;
}

struct shadow_board *models_shadows(struct models *m)
{
  return &m->shadows;
}

struct switch_board *models_switches(struct models *m)
{
  return config_is_shard(m->with.config) ? &m->switches : NULL;
}

struct models_report *models_report_of(struct models *m)
{
  return &m->report;
}

/* ---- Opening and closing ---- */

/* Files are read with the properties of the control topic. */
static err_t open_topic(struct models *m)
{
  const struct config *config = m->with.config;
  struct kafka_layers layers = kafka_setup_reader_layers(m->with.kafka, &config->catalogue.kafka, "models");

  if (*config->models.files_topic)
    model_work_fetch_from(&m->work, &layers);
  return models_topic_init(&layers, config->models.topic,
                           (int64_t)config->catalogue.partitions_refresh_ms * CLOCK_NS_PER_MS, &m->topic);
}

err_t models_open(const struct models_context *context, struct models **out)
{
  AUTO(models_close) struct models *m = NULL;

  TRY(mem_array(1, sizeof *m, &m));
  m->with = *context;
  models_report_init(&m->report);
  TRY(shadow_board_init(context->config, &m->shadows));
  TRY(switch_board_init(context->config->n_spaces, &m->switches));
  TRY(letter_window_init(&m->letters));
  TRY(restore(m));
  TRY(open_topic(m));
  TRY(report(m));
  *out = m;
  m = NULL;
  return ERR_OK;
}

void models_close(struct models **m)
{
  if (!*m)
    return;
  model_work_fini(&(*m)->work);
  models_topic_fini(&(*m)->topic);
  model_state_fini(&(*m)->state);
  models_report_fini(&(*m)->report);
  shadow_board_fini(&(*m)->shadows);
  switch_board_fini(&(*m)->switches);
  letter_window_fini(&(*m)->letters);
  region_fini(&(*m)->region);
  mem_free(m);
}
