/* SPDX-License-Identifier: Apache-2.0 */
/* A log of changes to rows of the device: written by the catalogue thread while a batch is applied, and brought to the
 * device at once.
 *
 * In the log, changes have an order; on the device all rows are written at the same time. So the log keeps, of each
 * slot that was touched, just what it will hold in the end: a new row, the row that another slot had before, or
 * nothing. Thread: catalogue. Allocates: at open.
 */
#ifndef ENGINE_CUDA_ROW_LOG_H
#define ENGINE_CUDA_ROW_LOG_H

#include "base/err.h"
#include "kernels/cuda/rows.h"

enum { ROW_LOG_ROWS = 4096, ROW_LOG_SLOTS = 4 * ROW_LOG_ROWS };

struct row_change {
  uint32_t slot;
  int32_t row;  /* in staging; ROWS_NONE: see from */
  int64_t from; /* the slot that had it when the log was empty, or ROWS_NONE: nothing */
};

struct row_log {
  size_t row_bytes;
  size_t capacity;   /* slots */
  uint32_t *touched; /* [capacity]: index in changes, plus one */
  struct row_change *changes;
  size_t n_changes;
  size_t n_rows;
  /* Pinned memory of the host, and as much of the device. */
  uint8_t *rows;        /* [ROW_LOG_ROWS][row_bytes] */
  uint32_t *slots;      /* [2 ROW_LOG_SLOTS]: to write, then to gather from */
  int32_t *sources;     /* [ROW_LOG_SLOTS] */
  uint8_t *device_rows; /* [ROW_LOG_ROWS + ROW_LOG_SLOTS][row_bytes]: gathered ones behind */
  uint32_t *device_slots;
  int32_t *device_sources;
  struct device_stream *stream;
};

/* Zeros are a log that can be closed. */
err_t row_log_open(size_t row_bytes, size_t capacity, struct row_log *out);
void row_log_close(struct row_log *log);

/* Whether there is room for one more change of an item, which is a put, or a drop and a move. */
bool row_log_has_room(const struct row_log *log);

/* The operations of columns.h. bytes [row_bytes]. */
void row_log_put(struct row_log *log, uint32_t slot, const uint8_t *bytes);
void row_log_drop(struct row_log *log, uint32_t slot);
void row_log_move(struct row_log *log, uint32_t from, uint32_t to);

/* Ask the log's stream to write what the log has, for which the stream must then be waited for, and tell which slots
 * have new rows: changed [*n] of the device. The log may be cleared after the wait. Returns ERR_DEVICE. */
err_t row_log_write(struct row_log *log, const struct device_rows *rows, const uint32_t **changed, size_t *n);
void row_log_clear(struct row_log *log);

#endif
