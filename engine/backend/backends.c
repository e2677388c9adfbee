/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses the backends at start, and goes on without one that fails. */
#include <stdio.h>

#include "base/log.h"
#include "engine/backend/backend.h"
#include "engine/backend/cuda_module.h"
#include "kernels/device.h"

/* Verify that a backend has columns for every similarity and a search for every method. */
static err_t verify_complete(const struct backend *b)
{
  for (size_t s = 0; s < N_SIMILARITIES; s++) {
    const struct similarity *similarity = similarity_at((enum similarity_kind)s);
    if (!b->columns[s])
      FAIL(ERR_CONFIG, "this build's backend %s has no columns for %s", b->name, similarity->name);
    for (size_t m = 0; m < similarity->methods->n; m++) {
      if (!b->search_of(&similarity->methods->rows[m]))
        FAIL(ERR_CONFIG, "this build's backend %s has no search for %s of %s", b->name,
             similarity->methods->rows[m].name, similarity->name);
    }
  }
  return ERR_OK;
}

/* Keep why the processor searches. Called once in the life of the backends. */
static void keep_reason(struct backends *b, const char *reason)
{
  snprintf(b->reason, sizeof b->reason, "%s", reason);
  atomic_store(&b->has_reason, true);
}

const char *backends_reason(const struct backends *b)
{
  return atomic_load(&b->has_reason) ? b->reason : NULL;
}

/* `auto` without a usable GPU. This is worth a warning if the machine has a card. */
static void warn_of_idle_card(struct backends *b)
{
  if (!device_is_in_machine(NULL))
    return;
  keep_reason(b, err_message());
  log_warn("backend_fallback", "backend=cpu detail=%s hint=%s", log_quote(span_of_str(b->reason)),
           "\"this machine has an NVIDIA card that is not used; engine.backend: cpu silences this\"");
}

/* Find the module, and a GPU that it can use. */
static err_t find_gpu(const struct cuda_module **out)
{
  struct device device;

  TRY(cuda_module_find_device(&device));
  return cuda_module_find(out);
}

err_t backends_choose(enum engine_backend choice, struct backends *out)
{
  const struct cuda_module *module = NULL;

  out->n = 0;
  atomic_init(&out->first, 0);
  atomic_init(&out->has_reason, false);
  if (choice != ENGINE_CPU && find_gpu(&module) != ERR_OK) {
    if (choice == ENGINE_CUDA)
      FAIL(ERR_CONFIG, "engine.backend is cuda, but %s: use auto or cpu", err_message());
    warn_of_idle_card(out);
    choice = ENGINE_CPU;
  }
  if (choice != ENGINE_CPU)
    out->at[out->n++] = module->backend;
  if (choice != ENGINE_CUDA)
    out->at[out->n++] = &backend_cpu;
  for (size_t b = 0; b < out->n; b++)
    TRY(verify_complete(out->at[b]));
  return ERR_OK;
}

err_t backends_fail(struct backends *b, size_t i, err_code_t err)
{
  size_t expected = i;

  if (i + 1 >= b->n)
    return err;
  if (atomic_compare_exchange_strong(&b->first, &expected, i + 1)) {
    log_error("backend_failed", "backend=%s detail=%s goes_on_with=%s", b->at[i]->name, log_failure(),
              b->at[i + 1]->name);
    keep_reason(b, err_message());
  }
  return ERR_OK;
}
