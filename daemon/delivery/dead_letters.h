/* SPDX-License-Identifier: Apache-2.0 */
/* Dead letters: unusable messages on their way to the dead-letter topic. Their number and bytes are bounded, so a topic
 * that is away blocks nobody: a letter that does not fit is refused, and the caller keeps it or gives it up.
 */
#ifndef DAEMON_DELIVERY_DEAD_LETTERS_H
#define DAEMON_DELIVERY_DEAD_LETTERS_H

#include <stdatomic.h>

#include "daemon/counters/counters.h"
#include "daemon/delivery/outlet.h"
#include "daemon/health/alarm.h"
#include "ingest/readers/offset_tracker.h"

struct dead_letters;

/* Who waits for a letter to be settled. A letter is settled when a broker has it, or when no broker can ever accept it:
 * then it is logged and counted. */
enum dead_letter_waiter {
  DEAD_LETTER_WAITER_NONE,
  DEAD_LETTER_WAITER_QUERY,     /* the query's ticket ends */
  DEAD_LETTER_WAITER_CATALOGUE, /* *is_settled is set */
};

/* Everything is borrowed during the call, except where it says otherwise. */
struct dead_letter {
  const char *topic; /* the dead-letter topic; outlives the letter */
  bool has_key;
  struct span key;
  bool has_value;
  struct span value;
  struct span content_type; /* of the message; empty for none */
  struct span retried;      /* the same: its header of ingest/kafka/retried_header.h */
  const char *source_topic;
  int32_t partition;
  int64_t offset;
  const char *reason;
  enum counters_letter kind; /* of the reason */
  enum dead_letter_waiter waiter;
  uint32_t ticket;          /* of a query */
  _Atomic bool *is_settled; /* of the catalogue; outlives the letter */
};

struct dead_letters_config {
  const struct kafka_layers *layers; /* copied; the properties outlive the letters */
  struct counters *counters;
  struct offset_tracker *tracker; /* where tickets end; NULL if no letter is of a query */
  struct alarm *alarm;            /* for a lost producer, with the pulses that watch the thread; may be NULL */
};

err_t dead_letters_open(const struct dead_letters_config *config, struct dead_letters **out);

/* Close. Undelivered letters are not settled. */
void dead_letters_close(struct dead_letters **l);

/* Send a letter. A query's ticket ends after a minute even if the letter is not settled: a dead-letter topic that is
 * away must not hold back the commits of all queries.
 *
 * Returns true if the letter was accepted, false if too many are on their way.
 * Thread: any. Blocks: no.
 */
bool dead_letters_send(struct dead_letters *l, const struct dead_letter *letter);

/* Give up a query's letter that was not accepted: log and count it, and end its ticket. */
void dead_letters_drop(struct dead_letters *l, const struct dead_letter *letter);

/* Letters on their way. */
size_t dead_letters_n_open(const struct dead_letters *l);

#endif
