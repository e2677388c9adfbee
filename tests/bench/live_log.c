/* SPDX-License-Identifier: Apache-2.0 */
/* Recording updates as they are applied, and replaying them up to an epoch. */
#include "tests/bench/live_log.h"

#include <string.h>

#include "base/mem.h"

void live_log_open(struct live_log *log, const void *rows, size_t n_rows, size_t n_items, size_t row_bytes)
{
  *log = (struct live_log){ .n_rows = n_rows, .row_bytes = row_bytes };
  bench_check(mem_array(n_rows, row_bytes, &log->rows));
  bench_check(mem_array(n_rows, 1, &log->is_absent));
  bench_check(mem_array(n_rows, sizeof *log->newest, &log->newest));
  memcpy(log->rows, rows, n_rows * row_bytes);
  memset(log->is_absent + n_items, 1, n_rows - n_items);
}

void live_log_close(struct live_log *log)
{
  mem_free(&log->rows);
  mem_free(&log->is_absent);
  mem_free(&log->newest);
  mem_free(&log->updates);
  mem_free(&log->puts);
}

void live_log_begin(struct live_log *log)
{
  log->batch_begin = log->n_updates;
}

bool live_log_has(const struct live_log *log, uint32_t item)
{
  for (size_t i = log->batch_begin; i < log->n_updates; i++) {
    if (log->updates[i].item == item)
      return true;
  }
  return false;
}

void live_log_add(struct live_log *log, uint32_t item, bool is_put)
{
  bench_check(mem_grow(log->n_updates + 1, sizeof *log->updates, &log->updates_capacity, &log->updates));
  log->updates[log->n_updates++] = (struct live_update){ .item = item, .is_put = is_put, .row = log->n_puts };
  if (is_put) {
    bench_check(mem_grow((log->n_puts + 1) * log->row_bytes, 1, &log->puts_capacity, &log->puts));
    log->newest[item] = (uint32_t)++log->n_puts;
  }
}

void live_log_end(struct live_log *log, uint64_t epoch)
{
  for (size_t i = log->batch_begin; i < log->n_updates; i++)
    log->updates[i].epoch = epoch;
}

uint8_t *live_log_row(struct live_log *log, uint32_t item)
{
  uint32_t put = log->newest[item];

  return put ? log->puts + (put - 1) * log->row_bytes : log->rows + item * log->row_bytes;
}

static int by_epoch(const void *a, const void *b)
{
  const struct live_sample *x = a, *y = b;

  return (x->epoch > y->epoch) - (x->epoch < y->epoch);
}

static void apply_until(struct live_log *log, size_t *next, uint64_t epoch)
{
  for (; *next < log->n_updates && log->updates[*next].epoch <= epoch; ++*next) {
    const struct live_update *update = &log->updates[*next];
    log->is_absent[update->item] = !update->is_put;
    if (update->is_put)
      memcpy(log->rows + update->item * log->row_bytes, log->puts + update->row * log->row_bytes, log->row_bytes);
  }
}

void live_log_judge(struct live_log *log, struct live_sample *samples, size_t n,
                    void (*judge)(struct live_log *log, const struct live_sample *sample))
{
  size_t next = 0;

  qsort(samples, n, sizeof *samples, by_epoch);
  for (size_t i = 0; i < n; i++) {
    apply_until(log, &next, samples[i].epoch);
    judge(log, &samples[i]);
  }
}
