/* SPDX-License-Identifier: Apache-2.0 */
/* What the store keeps of the control topic: its records, and marks of our own. A mark says that the parts of a retired
 * generation are deleted, so that no later start looks for them.
 *
 * Thread: as store_apply().
 */
#ifndef DAEMON_MODELS_MODEL_ROWS_H
#define DAEMON_MODELS_MODEL_ROWS_H

#include "base/space_name.h"
#include "daemon/models/model_state.h"
#include "store/store_models.h"

struct model_rows {
  struct store_model_record *at; /* [n] */
  size_t n;
  bool has_position; /* false: the store has none yet */
  struct store_position position;
};

/* Read the rows, and apply the records to a state. One that an older version accepted, and this one does not, is logged
 * and is as good as none.
 *
 * region  the rows live here
 *
 * Returns the errors of store_models_get(); ERR_MEMORY.
 */
err_t model_rows_read(struct store *store, struct region *region, struct model_state *state, struct model_rows *out);

/* Is the row a mark? Gets the generation that it names. */
bool model_rows_is_mark(const struct store_model_record *row, struct space_name *out);

/* Put the mark of a generation. On a full disk there is none.
 *
 * name  of the generation, canonical: books@2
 *
 * Returns the other errors of store_models_put().
 */
err_t model_rows_put_mark(struct store *store, const char *name, const struct store_position *position);

/* Append the row that deletes the mark of a generation, if it may have one, for store_models_put(). It belongs beside a
 * record from which on the store may have parts of it again.
 *
 * space   the plain name
 * region  the row's text lives here
 * rows    room for one more
 *
 * Returns ERR_MEMORY.
 */
err_t model_rows_unmark(struct span space, uint32_t generation, struct region *region, struct store_model_record *rows,
                        size_t *n);

#endif
