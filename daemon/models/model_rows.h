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

enum { MODEL_ROWS_PER_RECORD = 3 };

/* Append what to store of a record, for store_models_put(): the record, and the end of marks. A generation that is
 * added may have parts from then on, and so may the one whose parts it uses.
 *
 * change  what the record says
 * state   before the record
 * region  the rows' texts live here
 * rows    room for MODEL_ROWS_PER_RECORD more
 *
 * Returns ERR_MEMORY.
 */
err_t model_rows_append(const struct store_model_record *record, const struct model_change *change,
                        const struct model_state *state, struct region *region, struct store_model_record *rows,
                        size_t *n);

#endif
