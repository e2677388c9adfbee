/* SPDX-License-Identifier: Apache-2.0 */
/* The log of a catalogue's updates: each item's row at each epoch. Rows are codes or vectors of one size. */
#ifndef TESTS_BENCH_LIVE_LOG_H
#define TESTS_BENCH_LIVE_LOG_H

#include "tests/bench/bench_race.h"

struct live_update {
  uint64_t epoch; /* the epoch that the update is part of */
  uint32_t item;
  bool is_put;
  size_t row; /* for a put: the index of its row in `puts` */
};

struct live_sample {
  struct found found;
  uint64_t epoch;
  size_t query;
};

struct live_log {
  size_t n_rows, row_bytes;
  uint8_t *rows;      /* [n_rows][row_bytes]: of the start; live_log_judge() applies the updates to them */
  uint8_t *is_absent; /* [n_rows] */
  struct live_update *updates;
  size_t n_updates, updates_capacity, batch_begin;
  uint8_t *puts; /* rows that were put, in order */
  size_t n_puts, puts_capacity;
  uint32_t *newest; /* [n_rows]: 1 + the index of the newest put; 0: the row of the start */
};

/* `rows` is copied. Items from n_items on are absent at first. */
void live_log_open(struct live_log *log, const void *rows, size_t n_rows, size_t n_items, size_t row_bytes);
void live_log_close(struct live_log *log);

/* In order: begin a batch; is an item in it already?; add an update; give the batch its epoch. */
void live_log_begin(struct live_log *log);
bool live_log_has(const struct live_log *log, uint32_t item);
void live_log_add(struct live_log *log, uint32_t item, bool is_put);
void live_log_end(struct live_log *log, uint64_t epoch);

/* Return an item's newest row. After an add, the caller writes it. Valid until the next add. */
uint8_t *live_log_row(struct live_log *log, uint32_t item);

/* Replay the updates epoch by epoch, and judge each sample when the rows are those of its epoch. */
void live_log_judge(struct live_log *log, struct live_sample *samples, size_t n,
                    void (*judge)(struct live_log *log, const struct live_sample *sample));

#endif
