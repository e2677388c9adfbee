/* SPDX-License-Identifier: Apache-2.0 */
/* Checks that a catalogue fits into the memory of the machine and of its devices. Separate from engine.c, because the
 * check of a configuration (engine_check.c) needs it without an engine. */
#include <unistd.h>

#include "engine/engine_state.h"
#include "kernels/device.h"

enum { USUAL_KEY_BYTES = 24 };

static size_t columns_bytes_per_item(const struct engine *e, const struct backend *backend)
{
  size_t bytes = 0;

  for (size_t i = 0; i < e->n_spaces; i++)
    bytes += backend->columns[e->spaces[i].similarity->kind]->bytes_per_item(e->spaces[i].model);
  return bytes;
}

size_t engine_host_bytes_per_item(const struct engine *e)
{
  size_t bytes = keys_bytes_per_slot(USUAL_KEY_BYTES) + e->n_spaces;

  for (size_t b = 0; b < e->backends.n; b++) {
    if (!e->backends.at[b]->memory)
      bytes += columns_bytes_per_item(e, e->backends.at[b]);
  }
  return bytes;
}

static err_t verify_fit(const struct engine *e, size_t bytes_per_item, double there_is, const char *where)
{
  double needed = 2.0 * (double)e->max_items * (double)bytes_per_item;

  if (needed > there_is)
    FAIL(ERR_CONFIG,
         "catalogue.max_items = %zu needs %.0f bytes (%.1f GiB) in the two arenas, %s %.1f GiB: at most %.0f items fit",
         e->max_items, needed, needed / 0x1p30, where, there_is / 0x1p30, there_is / (2.0 * (double)bytes_per_item));
  return ERR_OK;
}

static err_t verify_device_memory(const struct engine *e, const struct backend *backend, bool counts_all)
{
  struct device device;
  size_t bytes;

  TRY(backend->memory(&bytes));
  if (counts_all && device_find(&device))
    bytes = device.memory_bytes;
  return verify_fit(e, columns_bytes_per_item(e, backend), (double)bytes, "the GPU has");
}

err_t engine_verify_memory(struct engine *e, bool counts_all)
{
  double machine = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);

  if (e->max_items >= UINT32_MAX)
    FAIL(ERR_CONFIG, "catalogue.max_items is %zu; at most %u items can be served", e->max_items, UINT32_MAX - 1);
  TRY(verify_fit(e, engine_host_bytes_per_item(e), machine, "this machine has"));
  for (size_t b = 0; b < e->backends.n; b++) {
    err_code_t err = e->backends.at[b]->memory ? verify_device_memory(e, e->backends.at[b], counts_all) : ERR_OK;
    if (err != ERR_OK)
      TRY(backends_fail(&e->backends, b, err));
  }
  return ERR_OK;
}
