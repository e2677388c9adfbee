/* SPDX-License-Identifier: Apache-2.0 */
/* Reduces a batch of changes to the final content of each slot, and writes that to the device (row_log.h). */
#include "engine/cuda/row_log.h"

#include <assert.h>
#include <string.h>

#include "base/mem.h"

size_t row_log_device_bytes(size_t row_bytes)
{
  return (ROW_LOG_ROWS + ROW_LOG_SLOTS) * row_bytes + 3 * ROW_LOG_SLOTS * sizeof(uint32_t);
}

err_t row_log_open(size_t row_bytes, size_t capacity, struct row_log *log)
{
  *log = (struct row_log){ .row_bytes = row_bytes, .capacity = capacity };
  TRY(mem_reserve(capacity, sizeof *log->touched, &log->touched));
  TRY(mem_array(ROW_LOG_SLOTS, sizeof *log->changes, &log->changes));
  TRY(device_alloc_host(ROW_LOG_ROWS, row_bytes, &log->rows));
  TRY(device_alloc_host(2 * ROW_LOG_SLOTS, sizeof *log->slots, &log->slots));
  TRY(device_alloc_host(ROW_LOG_SLOTS, sizeof *log->sources, &log->sources));
  TRY(device_alloc(ROW_LOG_ROWS + ROW_LOG_SLOTS, row_bytes, &log->device_rows));
  TRY(device_alloc(2 * ROW_LOG_SLOTS, sizeof *log->device_slots, &log->device_slots));
  TRY(device_alloc(ROW_LOG_SLOTS, sizeof *log->device_sources, &log->device_sources));
  return device_stream_open(&log->stream);
}

void row_log_close(struct row_log *log)
{
  device_stream_close(&log->stream);
  device_free(&log->device_sources);
  device_free(&log->device_slots);
  device_free(&log->device_rows);
  device_free_host(&log->sources);
  device_free_host(&log->slots);
  device_free_host(&log->rows);
  mem_free(&log->changes);
  mem_release(&log->touched, log->capacity, sizeof *log->touched);
}

bool row_log_has_room(const struct row_log *log)
{
  return log->n_rows < ROW_LOG_ROWS && log->n_changes + 2 <= ROW_LOG_SLOTS;
}

/* Return the slot's final content so far. A slot touched for the first time keeps what it has. */
static struct row_change *touch(struct row_log *log, uint32_t slot)
{
  if (log->touched[slot] == 0) {
    assert(log->n_changes < ROW_LOG_SLOTS);
    log->changes[log->n_changes] = (struct row_change){ slot, ROWS_NONE, slot };
    log->touched[slot] = (uint32_t)++log->n_changes;
  }
  return &log->changes[log->touched[slot] - 1];
}

void row_log_put(struct row_log *log, uint32_t slot, const uint8_t *bytes)
{
  struct row_change *change = touch(log, slot);

  if (change->row == ROWS_NONE) {
    assert(log->n_rows < ROW_LOG_ROWS);
    change->row = (int32_t)log->n_rows++;
  }
  memcpy(log->rows + (size_t)change->row * log->row_bytes, bytes, log->row_bytes);
}

static void hold_nothing(struct row_change *change)
{
  change->row = ROWS_NONE;
  change->from = ROWS_NONE;
}

void row_log_drop(struct row_log *log, uint32_t slot)
{
  hold_nothing(touch(log, slot));
}

void row_log_move(struct row_log *log, uint32_t from, uint32_t to)
{
  struct row_change *source = touch(log, from), *target = touch(log, to);

  target->row = source->row;
  target->from = source->from;
  hold_nothing(source);
}

/* List the slots to write. Rows that come from other slots are gathered after the log's own rows. */
static size_t list_writes(struct row_log *log, size_t *n_gathered)
{
  size_t n = 0;

  *n_gathered = 0;
  for (size_t i = 0; i < log->n_changes; i++) {
    const struct row_change *change = &log->changes[i];
    if (change->row == ROWS_NONE && change->from == change->slot)
      continue; /* unchanged in the end */
    log->slots[n] = change->slot;
    log->sources[n] = change->row;
    if (change->row == ROWS_NONE && change->from != ROWS_NONE) {
      log->slots[ROW_LOG_SLOTS + *n_gathered] = (uint32_t)change->from;
      log->sources[n] = (int32_t)(ROW_LOG_ROWS + *n_gathered);
      ++*n_gathered;
    }
    n++;
  }
  return n;
}

err_t row_log_write(struct row_log *log, const struct device_rows *rows, const uint32_t **changed, size_t *n)
{
  size_t n_writes, n_gathered;

  n_writes = list_writes(log, &n_gathered);
  TRY(device_copy_in(log->stream, log->device_rows, log->rows, log->n_rows * log->row_bytes));
  TRY(device_copy_in(log->stream, log->device_slots, log->slots, n_writes * sizeof *log->slots));
  TRY(device_copy_in(log->stream, log->device_slots + ROW_LOG_SLOTS, log->slots + ROW_LOG_SLOTS,
                     n_gathered * sizeof *log->slots));
  TRY(device_copy_in(log->stream, log->device_sources, log->sources, n_writes * sizeof *log->sources));
  TRY(rows_gather(log->stream, rows, log->device_slots + ROW_LOG_SLOTS, n_gathered,
                  log->device_rows + ROW_LOG_ROWS * log->row_bytes));
  TRY(rows_scatter(log->stream, rows, log->device_slots, log->device_sources, n_writes, log->device_rows));
  *changed = log->device_slots;
  *n = n_writes;
  return ERR_OK;
}

void row_log_clear(struct row_log *log)
{
  for (size_t i = 0; i < log->n_changes; i++)
    log->touched[log->changes[i].slot] = 0;
  log->n_changes = 0;
  log->n_rows = 0;
}
