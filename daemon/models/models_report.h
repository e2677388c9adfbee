/* SPDX-License-Identifier: Apache-2.0 */
/* The generations as /status and /metrics show them. The catalogue thread writes it, any thread may read it.
 *
 * Thread: any, between lock and unlock.
 */
#ifndef DAEMON_MODELS_MODELS_REPORT_H
#define DAEMON_MODELS_MODELS_REPORT_H

#include <pthread.h>

#include "daemon/models/model_work.h"

struct models_report_row {
  const char *space; /* name in the configuration */
  uint32_t generation;
  uint32_t root; /* the generation whose parts it uses */
  enum model_phase phase;
  bool is_in_engine;
  bool is_indexed;  /* it lacks no index */
  bool is_current;  /* it answers */
  bool is_wanted;   /* it should answer */
  bool is_failed;   /* it cannot be used, or its file cannot be fetched */
  bool is_in_topic; /* its file comes from the topic of files */
  uint64_t n_bytes; /* of that file */
  uint64_t n_fetched;
  char digest[MODEL_DIGEST_CHARS + 1];
  char path[256]; /* its beginning */
  uint64_t n_walked;
  uint64_t n_filled;
  uint64_t n_unusable;
  uint64_t n_refused; /* see struct model_entry */
  char problem[MODEL_PROBLEM_BYTES];
  char refused[MODEL_PROBLEM_BYTES];
};

struct models_report {
  pthread_mutex_t mutex;
  struct models_report_row *rows; /* [n] */
  size_t n;
  size_t capacity;
  int64_t next;                      /* the first offset of the control topic that was not read; -1: nothing was */
  char problem[MODEL_PROBLEM_BYTES]; /* why the control topic is not read; "" if it is */
  char refused[MODEL_PROBLEM_BYTES]; /* the newest record that made no sense; "": none since the start */
  uint64_t n_refused;                /* records that made no sense, since the start */
};

void models_report_init(struct models_report *r);
void models_report_fini(struct models_report *r);
void models_report_lock(struct models_report *r);
void models_report_unlock(struct models_report *r);

/* Copy the entries of the work. Call between lock and unlock. Returns ERR_MEMORY: then nothing has changed. */
err_t models_report_copy(struct models_report *r, const struct model_work *work);

#endif
