/* SPDX-License-Identifier: Apache-2.0 */
/* What a dead letter has from its record, and which kind of reason an error is. */
#include "daemon/delivery/record_letter.h"

static enum counters_letter kind_of(err_code_t err)
{
  switch (err) {
  case ERR_WIRE:
    return LETTER_UNREADABLE;
  case ERR_SPACE:
    return LETTER_UNKNOWN_SPACE;
  case ERR_TOO_LARGE:
    return LETTER_TOO_LARGE;
  default:
    return LETTER_UNUSABLE;
  }
}

struct dead_letter record_letter_of(const struct topic_record *record, const char *topic, const char *source_topic,
                                    err_code_t err)
{
  return (struct dead_letter){
    .topic = topic,
    .has_key = record->has_key,
    .key = record->key,
    .has_value = record->has_value,
    .value = record->value,
    .content_type = record->content_type,
    .retried = record->retried,
    .source_topic = source_topic,
    .partition = record->partition,
    .offset = record->offset,
    .reason = err_message(),
    .kind = kind_of(err),
  };
}
