/* SPDX-License-Identifier: Apache-2.0 */
/* The log of a catalogue's updates: what each item was at each epoch. Rows are codes or vectors, of one size. */
#ifndef TESTS_BENCH_LIVE_LOG_H
#define TESTS_BENCH_LIVE_LOG_H

#include "tests/bench/bench_race.h"

struct live_update {
  uint64_t epoch; /* of which it is part */
  uint32_t item;
  bool is_put;
  size_t row; /* of a put: where its row is in `puts` */
};

struct live_sample {
  struct found found;
  uint64_t epoch;
  size_t query;
};

struct live_log {
  size_t n_rows, row_bytes;
  uint8_t *rows;      /* [n_rows][row_bytes]: as at the start until live_log_judge(), which brings them forward */
  uint8_t *is_absent; /* [n_rows] */
  struct live_update *updates;
  size_t n_updates, updates_capacity, batch_begin;
  uint8_t *puts; /* rows that were put, one after the other */
  size_t n_puts, puts_capacity;
  uint32_t *newest; /* [n_rows]: 1 + the put that gave the newest row; 0: the row of the start */
};

/* rows is copied; items from n_items on are absent at first. */
void live_log_open(struct live_log *log, const void *rows, size_t n_rows, size_t n_items, size_t row_bytes);
void live_log_close(struct live_log *log);

/* Begin a batch; is an item in it already; add an update of it; give what was added its epoch. */
void live_log_begin(struct live_log *log);
bool live_log_has(const struct live_log *log, uint32_t item);
void live_log_add(struct live_log *log, uint32_t item, bool is_put);
void live_log_end(struct live_log *log, uint64_t epoch);

/* The newest row of an item; of one that was just added, to be written. Valid until the next add. */
uint8_t *live_log_row(struct live_log *log, uint32_t item);

/* Bring the rows forward, epoch by epoch, and judge each sample when the rows are those of its epoch. */
void live_log_judge(struct live_log *log, struct live_sample *samples, size_t n,
                    void (*judge)(struct live_log *log, const struct live_sample *sample));

#endif
