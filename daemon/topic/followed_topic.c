/* SPDX-License-Identifier: Apache-2.0 */
/* One consumer after the other, and the positions that each begins with. */
#include "daemon/topic/followed_topic.h"

#include "base/log.h"

err_t followed_topic_init(const struct kafka_layers *layers, const char *name, struct followed_topic *out)
{
  *out = (struct followed_topic){ .layers = *layers, .name = name };
  return topic_reader_open(layers, name, &out->reader);
}

void followed_topic_fini(struct followed_topic *t)
{
  topic_reader_close(&t->reader);
  topic_positions_fini(&t->positions);
}

/* ---- Consumers ---- */

void followed_topic_leave(struct followed_topic *t)
{
  t->is_left = true;
}

void followed_topic_take_over(struct followed_topic *t, struct topic_reader **next)
{
  if (topic_reader_is_outdated(t->reader))
    log_info("kafka_client_renewed", "client=%s", t->layers.client);
  topic_reader_abandon(&t->reader);
  t->reader = *next;
  *next = NULL;
  t->is_left = false;
  topic_positions_clear(&t->positions);
}

err_t followed_topic_reopen(struct followed_topic *t)
{
  struct topic_reader *next;

  TRY(topic_reader_open_again(&t->layers, t->name, &next));
  followed_topic_take_over(t, &next);
  return ERR_OK;
}

err_t followed_topic_renew(struct followed_topic *t, struct topic_reader **next)
{
  *next = NULL;
  if (!topic_reader_is_outdated(t->reader) || !renewal_wait_is_over(&t->renewal))
    return ERR_OK;
  err_code_t err = topic_reader_open_again(&t->layers, t->name, next);
  if (err == ERR_KAFKA_RETRY) {
    renewal_wait_begin(&t->renewal, t->layers.client);
    return ERR_OK;
  }
  TRY(err);
  renewal_wait_end(&t->renewal);
  return ERR_OK;
}

/* ---- Partitions ---- */

void followed_topic_clear(struct followed_topic *t)
{
  topic_reader_unassign(t->reader);
  topic_positions_clear(&t->positions);
}

void followed_topic_note_policy(struct followed_topic *t, const struct topic_policy *policy)
{
  t->positions.has_holes = !policy->is_known || policy->is_compacted;
}

err_t followed_topic_add(struct followed_topic *t, const struct store_position *stored, int timeout_ms, int64_t *from)
{
  int64_t first, end;

  TRY(topic_reader_bounds(t->reader, (int32_t)t->positions.n, timeout_ms, &first, &end));
  return topic_positions_add(&t->positions, stored, first, end, from);
}

err_t followed_topic_take(struct followed_topic *t, const struct topic_record *record, bool *is_new)
{
  *is_new = false;
  if (!record->is_end)
    return topic_positions_advance(&t->positions, record, is_new);
  topic_positions_note_end(&t->positions, record->partition, record->offset);
  return ERR_OK;
}
