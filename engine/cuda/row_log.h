/* SPDX-License-Identifier: Apache-2.0 */
/* A log of changes to rows on the device. The catalogue thread fills it while it applies a batch, and writes it to the
 * device in one go.
 *
 * Changes in the log are ordered, but the device writes all rows at the same time. So the log keeps only the final
 * content of each touched slot: a new row, the row that another slot had before, or nothing. Thread: catalogue.
 * Allocates: at open.
 */
#ifndef ENGINE_CUDA_ROW_LOG_H
#define ENGINE_CUDA_ROW_LOG_H

#include "base/err.h"
#include "kernels/cuda/rows.h"

enum { ROW_LOG_ROWS = 4096, ROW_LOG_SLOTS = 4 * ROW_LOG_ROWS };

struct row_change {
  uint32_t slot;
  int32_t row;  /* index in the log's rows; ROWS_NONE: see from */
  int64_t from; /* the slot that had this row when the log was empty; ROWS_NONE: the slot will be empty */
};

struct row_log {
  size_t row_bytes;
  size_t capacity;   /* slots */
  uint32_t *touched; /* [capacity]: index in changes plus 1; 0: not touched */
  struct row_change *changes;
  size_t n_changes;
  size_t n_rows;
  /* Pinned host memory, then the same arrays in device memory. */
  uint8_t *rows;        /* [ROW_LOG_ROWS][row_bytes] */
  uint32_t *slots;      /* [2 ROW_LOG_SLOTS]: slots to write, then slots to gather from */
  int32_t *sources;     /* [ROW_LOG_SLOTS] */
  uint8_t *device_rows; /* [ROW_LOG_ROWS + ROW_LOG_SLOTS][row_bytes]: the log's rows, then gathered ones */
  uint32_t *device_slots;
  int32_t *device_sources;
  struct device_stream *stream;
};

/* The device memory of a log. */
size_t row_log_device_bytes(size_t row_bytes);

/* Open or close a log. A log of zeros can be closed. Returns ERR_MEMORY or ERR_DEVICE on failure. */
err_t row_log_open(size_t row_bytes, size_t capacity, struct row_log *out);
void row_log_close(struct row_log *log);

/* Is there room for one more change of an item? A change is a put, or a drop and a move. */
bool row_log_has_room(const struct row_log *log);

/* Log a put, drop or move, as in columns.h. bytes [row_bytes]. */
void row_log_put(struct row_log *log, uint32_t slot, const uint8_t *bytes);
void row_log_drop(struct row_log *log, uint32_t slot);
void row_log_move(struct row_log *log, uint32_t from, uint32_t to);

/* Start to write the log's changes in its stream, and report the slots that are written: changed [*n] on the device.
 * The log may be cleared after device_wait() on its stream. Returns ERR_DEVICE on failure. */
err_t row_log_write(struct row_log *log, const struct device_rows *rows, const uint32_t **changed, size_t *n);
void row_log_clear(struct row_log *log);

#endif
