/* SPDX-License-Identifier: Apache-2.0 */
/* Getting one model file from the topic of files into the directory of the store.
 *
 * The topic is read from its first record to where it ended at the beginning. The newest chunk of each key counts, as
 * for compaction. Nothing is committed, and no group is joined.
 */
#ifndef DAEMON_MODELS_MODEL_FETCH_H
#define DAEMON_MODELS_MODEL_FETCH_H

#include <limits.h>
#include <stdatomic.h>

#include "base/err.h"
#include "base/model_change.h"
#include "ingest/kafka/kafka_properties.h"

struct model_fetch {
  struct kafka_layers layers; /* of a consumer; used only while uses_kafka is set */
  const char *topic;          /* the same */
  char directory[PATH_MAX];   /* of the store */
  char digest[MODEL_DIGEST_CHARS + 1];
  uint64_t n_bytes;
  uint64_t read_in_vain;      /* mark of the topic when it was last read for this file, and lacked it; 0: it was not */
  bool is_unchanged;          /* the topic still has that mark, so it was not read again */
  _Atomic bool is_cancelled;  /* end soon */
  _Atomic bool uses_kafka;    /* it reads the topic: ends soon after is_cancelled, unless the disk hangs */
  _Atomic uint64_t n_fetched; /* bytes of the file that the newest reading of the topic has found */
};

/* Return at once if the file is there, with the right digest. Otherwise fetch it.
 *
 * Returns ERR_MODEL with what is missing or wrong in the topic; ERR_STORE_FULL; ERR_STOPPING when it was cancelled; the
 * errors of Kafka and of files.
 *
 * Thread: one of its own. Blocks: as long as it takes.
 */
err_t model_fetch_run(struct model_fetch *f);

#endif
