/* SPDX-License-Identifier: Apache-2.0 */
/* Dead letters: messages that cannot be used, on their way to the dead-letter topic. Bounded in number and bytes, so
 * that a topic that is away holds up nobody: what does not fit is the caller's to keep, or is told and let go. */
#ifndef DAEMON_DELIVERY_DEAD_LETTERS_H
#define DAEMON_DELIVERY_DEAD_LETTERS_H

#include <stdatomic.h>

#include "daemon/counters.h"
#include "daemon/delivery/outlet.h"

struct dead_letters;

struct delivery_dead_letter {
  const char *topic; /* the dead-letter topic; outlives the letter */
  bool has_key;
  struct span key;
  bool has_value;
  struct span value;
  struct span content_type; /* of the message; empty for none */
  const char *source_topic;
  int32_t partition;
  int64_t offset;
  const char *reason;
  bool is_query; /* of the query topic: it has a ticket */
  uint32_t ticket;
  _Atomic bool *is_settled; /* set once nobody has to wait for the letter; NULL; outlives the letter */
};

struct dead_letters_config {
  const struct kafka_layers *layers; /* the properties outlive the letters */
  struct counters *counters;
  void *context;
  void (*ticket_ended)(void *context, uint32_t ticket); /* a query's letter needs no more waiting. Thread: any */
  struct pulses *pulses; /* where its thread beats; may be NULL */
};

err_t dead_letters_open(const struct dead_letters_config *config, struct dead_letters **out);

/* Close; letters that no broker has by then are not settled, and their tickets do not end. */
void dead_letters_close(struct dead_letters **l);

/* Send a letter. It is settled, or its ticket ends, once a broker has it, or once no broker can ever take it: that is
 * told and counted. A query's ticket ends after a minute in any case: a dead-letter topic that is away must not hold
 * back the commits of all queries.
 *
 * Returns whether the letter was taken. false: too many are on their way.
 * Thread: any. Blocks: no.
 */
bool dead_letters_send(struct dead_letters *l, const struct delivery_dead_letter *letter);

/* Tell and count a letter that was not taken, and end its ticket. */
void dead_letters_drop(struct dead_letters *l, const struct delivery_dead_letter *letter);

/* Letters on their way. */
size_t dead_letters_n_open(const struct dead_letters *l);

#endif
