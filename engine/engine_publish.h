/* SPDX-License-Identifier: Apache-2.0 */
/* Publishing epochs: both arenas get the same changes, one after the other. Private to engine*.c. Thread: catalogue. */
#ifndef ENGINE_ENGINE_PUBLISH_H
#define ENGINE_ENGINE_PUBLISH_H

#include "engine/engine_state.h"

/* An epoch to be published. */
struct epoch {
  uint64_t number;
  int64_t time_ms; /* 0: lifetimes are not kept */
  const struct position *positions;
  size_t n_positions;
};

/* Return the time of an epoch that begins now. A clock that is set back brings no item back. */
int64_t engine_publish_time(struct engine *e);

/* Begin the next epoch. Both arenas get its number, its time and its changes. */
struct epoch engine_publish_next(struct engine *e, const struct position *positions, size_t n);

/* Let engine_next_change_ms() know when the next item expires or comes out of its embargo. */
void engine_publish_note_time(struct engine *e);

/* Apply changes, the time and the positions of an epoch to the back arena. Errors as engine_apply(). */
err_t engine_publish_to_back(struct engine *e, const struct epoch *epoch, struct prepared_change *changes, size_t n);

/* Apply changes to the back arena, flip the pair, and apply them to the other one. Errors and blocking as
 * engine_apply(). */
err_t engine_publish(struct engine *e, const struct epoch *epoch, struct prepared_change *changes, size_t n);

/* What batches are prepared for: all spaces and attributes of the engine. */
struct prepare_target engine_publish_target(const struct engine *e);

/* Prepare changes for a target, and publish them with positions as the next epoch. Errors and blocking as
 * engine_apply(). */
err_t engine_publish_changes(struct engine *e, const struct prepare_target *target, const struct item_change *changes,
                             size_t n, const struct position *positions, size_t n_positions);

/* Publish an epoch with the same items, in which each arena has been edited.
 *
 * edit  called for the back arena, before and after the flip
 */
typedef void (*engine_edit)(struct arena *back, void *context);
err_t engine_publish_edit(struct engine *e, const struct epoch *epoch, engine_edit edit, void *context);

#endif
