/* SPDX-License-Identifier: Apache-2.0 */
/* Fetching the file of one generation after the other, each in a thread of its own. A file that cannot be fetched now
 * is fetched again later, with growing pauses. Meanwhile its generation waits, with the reason as its problem.
 *
 * Thread: catalogue.
 */
#ifndef DAEMON_MODELS_MODEL_FETCHING_H
#define DAEMON_MODELS_MODEL_FETCHING_H

#include "daemon/config/config.h"
#include "daemon/models/model_entry.h"
#include "ingest/kafka/kafka_properties.h"

struct model_fetch_errand;

/* All zeros: no file is ever fetched. */
struct model_fetching {
  const struct config *config;
  struct kafka_layers layers;        /* of a consumer */
  struct model_fetch_errand *errand; /* owned; NULL: none is under way */
  struct model_entry *entry;         /* whose file is being fetched */
};

/* config, layers  must outlive it; the layers' texts too */
void model_fetching_init(const struct config *config, const struct kafka_layers *layers, struct model_fetching *out);

/* Forget the file, because the process is about to end. Reading the topic ends within some seconds, unless the disk
 * hangs that the chunks are written to. A file that is being verified is left behind after a moment: errand_n_left()
 * counts it then. */
void model_fetching_drop(struct model_fetching *f);

/* Must the file of this entry be fetched, or looked at, before it is loaded? */
bool model_fetching_is_needed(const struct model_entry *entry);

/* Is it time to do so? */
bool model_fetching_is_due(const struct model_entry *entry);

/* Is the file of this entry being fetched? */
bool model_fetching_is_of(const struct model_fetching *f, const struct model_entry *entry);

/* Begin to fetch the file of an entry. None may be under way. If that cannot be, it is the entry's problem. */
void model_fetching_begin(struct model_fetching *f, struct model_entry *entry);

/* Ask for an early end: nobody needs the file any more. */
void model_fetching_cancel(struct model_fetching *f);

/* If it has ended, note that in the entry: the file can be loaded, or there is a problem. Also note how far it is. */
void model_fetching_step(struct model_fetching *f);

#endif
