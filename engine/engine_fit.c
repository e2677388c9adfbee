/* SPDX-License-Identifier: Apache-2.0 */
/* Checks that a catalogue fits into the memory of the machine and of its devices. Separate from engine.c, because the
 * check of a configuration (engine_check_config.c) needs it without opening one. */
#include <unistd.h>

#include "engine/backend/cuda_module.h"
#include "engine/engine_state.h"

enum { USUAL_KEY_BYTES = 24 };

/* Some forty allocations on a device, each rounded up to 2 MiB. */
enum { DEVICE_SLACK_BYTES = 80 << 20 };

/* Bytes of an item in one arena. */
static size_t columns_bytes_per_item(const struct engine *e, const struct backend *backend)
{
  size_t bytes = backend->attributes.open ? backend->attributes.bytes_per_slot(&e->attributes) : 0;

  for (size_t i = 0; i < e->spaces.n; i++) {
    const struct space *space = e->spaces.entries[i].space;
    if (space)
      bytes += backend->columns[space->similarity->kind]->bytes_per_item(space->model);
  }
  return bytes;
}

size_t engine_host_bytes_per_pair(const struct engine *e)
{
  size_t has_part_bytes = (e->spaces.n + 7) / 8; /* a bit for each space */
  size_t bytes = has_part_bytes + attribute_columns_bytes_per_item(&e->attributes);

  if (!lifetimes_plan_is_empty(&e->lifetimes))
    bytes += has_part_bytes + LIFETIMES_BYTES_PER_SLOT;

  for (size_t b = 0; b < e->backends.n; b++) {
    if (!e->backends.at[b]->memory)
      bytes += columns_bytes_per_item(e, e->backends.at[b]);
    if (e->backends.at[b]->attributes.open)
      bytes += e->attributes.n / 7 + 1; /* marks of slots: a little more than a bit for each */
  }
  return 2 * bytes + keys_bytes_per_pair(USUAL_KEY_BYTES);
}

/* Memory that a catalogue needs: some for each slot, and some besides. */
struct need {
  double per_slot, fixed;
  const char *what;
};

static err_t verify_fit(const struct engine *e, struct need need, double there_is, const char *where)
{
  double needed = need.fixed + (double)e->max_items * need.per_slot;
  double most = there_is > need.fixed ? (there_is - need.fixed) / need.per_slot : 0;

  if (needed > there_is)
    FAIL(ERR_CONFIG, "catalogue.max_items = %zu needs %.0f bytes (%.1f GiB) in %s, %s %.1f GiB: at most %.0f items fit",
         e->max_items, needed, needed / 0x1p30, need.what, where, there_is / 0x1p30, most);
  return ERR_OK;
}

/* Bytes that a space takes in both arenas, whatever max_items is. */
static double fixed_bytes(const struct backend *backend, const struct space *space)
{
  const struct columns_ops *ops = backend->columns[space->similarity->kind];

  return ops->fixed_bytes ? 2.0 * (double)ops->fixed_bytes(space->model) : 0;
}

/* The two arenas with their fixed parts, the workers' memory, and what the device's allocator loses between them. */
static struct need need_of_device(const struct engine *e, const struct backend *backend)
{
  struct need need = { .per_slot = 2.0 * (double)columns_bytes_per_item(e, backend),
                       .fixed = DEVICE_SLACK_BYTES,
                       .what = "the two arenas and the workers" };

  for (size_t i = 0; i < e->spaces.n; i++) {
    const struct space *space = e->spaces.entries[i].space;
    need.fixed += space ? fixed_bytes(backend, space) : 0;
  }
  if (backend->attributes.open && e->attributes.n > 0)
    need.fixed += 2.0 * (double)backend->attributes.fixed_bytes();
  if (backend->worker_bytes) {
    enum { MANY = 1 << 20 }; /* bytes are rounded up, so the slope is that of many slots */
    double least = (double)backend->worker_bytes(0);
    need.fixed += (double)e->n_workers * least;
    need.per_slot += (double)e->n_workers * ((double)backend->worker_bytes(MANY) - least) / MANY;
  }
  return need;
}

static err_t verify_device_memory(const struct engine *e, const struct backend *backend, bool counts_all)
{
  struct device device;
  size_t bytes;

  if (counts_all && cuda_module_find_device(&device) == ERR_OK)
    bytes = device.memory_bytes;
  else
    TRY(backend->memory(&bytes));
  return verify_fit(e, need_of_device(e, backend), (double)bytes, "the GPU has");
}

/* The two arenas, and the evaluated filters if there may be any. */
static struct need need_of_host(const struct engine *e)
{
  struct need need = { .per_slot = (double)engine_host_bytes_per_pair(e), .what = "the two arenas" };

  if (e->attributes.n > 0) {
    need.fixed = (double)filter_cache_bytes(bits_words(e->max_items), FILTER_CACHE_BYTES);
    need.what = "the two arenas and evaluated filters";
  }
  return need;
}

static double machine_bytes(void)
{
  return (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
}

err_t engine_verify_memory(struct engine *e, bool counts_all)
{
  struct need of_host = need_of_host(e);

  if (e->max_items >= UINT32_MAX)
    FAIL(ERR_CONFIG, "catalogue.max_items is %zu; at most %u items can be served", e->max_items, UINT32_MAX - 1);
  TRY(verify_fit(e, of_host, machine_bytes(), "this machine has"));
  for (size_t b = 0; b < e->backends.n; b++) {
    err_code_t err = e->backends.at[b]->memory ? verify_device_memory(e, e->backends.at[b], counts_all) : ERR_OK;
    if (err != ERR_OK)
      TRY(backends_fail(&e->backends, b, err));
  }
  return ERR_OK;
}

/* Bytes that one more space takes in both arenas of a backend. */
static double bytes_of_space(const struct engine *e, const struct backend *backend, const struct space *space)
{
  double has_part_bits = lifetimes_plan_is_empty(&e->lifetimes) || backend->memory ? 1 : 2;
  double per_item = (double)backend->columns[space->similarity->kind]->bytes_per_item(space->model) + has_part_bits / 8;

  return 2 * per_item * (double)e->max_items + fixed_bytes(backend, space);
}

static err_t verify_room(const struct engine *e, const struct backend *backend, const struct space *space,
                         double there_is)
{
  double needed = bytes_of_space(e, backend, space);

  if (needed > there_is)
    FAIL(ERR_FULL,
         "generation %u of space %s needs %.0f bytes (%.1f GiB) in the two arenas, for catalogue.max_items = %zu; %s "
         "%.1f GiB left for it",
         space->generation, space->name, needed, needed / 0x1p30, e->max_items,
         backend->memory ? "the GPU has" : "this machine has", (there_is > 0 ? there_is : 0) / 0x1p30);
  return ERR_OK;
}

/* What the searchers that are not open yet will take of a device. At a start, generations are added before them. */
static double bytes_of_searchers(const struct engine *e, const struct backend *backend)
{
  size_t n_open = atomic_load(&e->n_searchers);

  if (!backend->worker_bytes || n_open >= e->n_workers)
    return 0;
  return (double)(e->n_workers - n_open) * (double)backend->worker_bytes(e->max_items) + DEVICE_SLACK_BYTES;
}

/* A device that fails here is given up, as by a search. */
static err_t verify_device_room(struct engine *e, size_t b, const struct space *space)
{
  const struct backend *backend = e->backends.at[b];
  size_t bytes;
  err_code_t err = backend->memory(&bytes);

  if (err != ERR_OK)
    return backends_fail(&e->backends, b, err);
  return verify_room(e, backend, space, (double)bytes - bytes_of_searchers(e, backend));
}

err_t engine_verify_room(struct engine *e, const struct space *space)
{
  struct need of_host = need_of_host(e);
  double left = machine_bytes() - of_host.fixed - (double)e->max_items * of_host.per_slot;

  for (size_t b = atomic_load(&e->backends.first); b < e->backends.n; b++) {
    const struct backend *backend = e->backends.at[b];
    TRY(backend->memory ? verify_device_room(e, b, space) : verify_room(e, backend, space, left));
  }
  return ERR_OK;
}
