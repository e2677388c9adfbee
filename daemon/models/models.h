/* SPDX-License-Identifier: Apache-2.0 */
/* The generations of models: what the control topic says goes to the store and into the state, and then it is done.
 *
 * The catalogue thread owns all of it. It alone writes the store and the engine, and which generation a plain part
 * belongs to must not change within a batch. So the control topic is polled between two batches, without waiting.
 *
 * Thread: catalogue, except where it says otherwise.
 */
#ifndef DAEMON_MODELS_MODELS_H
#define DAEMON_MODELS_MODELS_H

#include "daemon/counters/counters.h"
#include "daemon/delivery/delivery.h"
#include "daemon/models/models_report.h"
#include "daemon/setup/kafka_setup.h"
#include "daemon/shadow/shadow_board.h"

struct models;

struct models_context {
  const struct config *config; /* models.topic is set */
  const struct kafka_setup *kafka;
  struct engine *engine;
  struct store *store;
  struct delivery *delivery;
  struct counters *counters;
  struct stand_back *stand_back; /* of the catalogue thread */
};

/* Open the consumer, and read what the store has of the control topic. The context is copied. */
err_t models_open(const struct models_context *context, struct models **out);

/* Stop and close. The delivery must be closed before: it sets flags in dead letters that are freed here. */
void models_close(struct models **m);

/* What was asked for so far. */
const struct model_state *models_state(const struct models *m);

/* Was the control topic read to where it ended at the start? Thread: any. */
bool models_have_caught_up(const struct models *m);

/* Should queries be left to others? See model_switching_lacks_parts(). Thread: any. */
bool models_lack_parts(const struct models *m);

/* Take what the control topic has, and do a little of what it asks for.
 *
 * may_fill  the engine has the items that the store has
 * is_busy   there is more to do at once
 *
 * Returns an error that waiting does not cure. What is wrong with the control topic or a model is in the report.
 */
err_t models_step(struct models *m, bool may_fill, bool *is_busy);

/* Is a generation being loaded, or to be loaded? One whose file could not be fetched does not count. */
bool models_are_loading(const struct models *m);

/* The engine is about to be loaded from the store; a stored part cannot be used by its model. Threads and parameters as
 * model_work_note_loading() and model_work_note_unusable(). */
void models_note_loading(struct models *m);
void models_note_unusable(struct models *m, struct span part, struct span key);

/* A record of the catalogue was refused because of a part. See model_work_note_refused(). */
void models_note_refused(struct models *m, struct span part, struct span key);

/* The engine was loaded from the store, with all generations that it has: none needs to be filled, and those that
 * should answer do so from now on. Errors as engine_set_current(). */
err_t models_note_loaded(struct models *m);

/* Can these changes wait? See model_work_can_wait(). */
bool models_can_wait(const struct models *m, const struct item_change *changes, size_t n);

/* Return which generations are compared, and what came of it. Thread: any. */
struct shadow_board *models_shadows(struct models *m);

/* Return which generations queries get while shards switch; NULL: the daemon is no shard. Thread: any. */
struct switch_board *models_switches(struct models *m);

/* Return the report. Lock it to read it. Thread: any. */
struct models_report *models_report_of(struct models *m);

#endif
