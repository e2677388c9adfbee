/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses the backends at start, and goes on without one that fails. */
#include "base/log.h"
#include "engine/backend.h"
#include "kernels/device.h"

/* Verify that a backend has columns for every similarity and a search for every method. */
static err_t verify_complete(const struct backend *b)
{
  for (size_t s = 0; s < N_SIMILARITIES; s++) {
    const struct similarity *similarity = similarity_at((enum similarity_kind)s);
    if (!b->columns[s])
      FAIL(ERR_CONFIG, "this build's backend %s has no columns for %s", b->name, similarity->name);
    for (size_t m = 0; m < similarity->methods->n; m++) {
      if (!similarity->methods->rows[m].search[b->kind])
        FAIL(ERR_CONFIG, "this build's backend %s has no search for %s of %s", b->name,
             similarity->methods->rows[m].name, similarity->name);
    }
  }
  return ERR_OK;
}

err_t backends_choose(enum engine_backend choice, struct backends *out)
{
  struct device device;
  bool has_device = choice != ENGINE_CPU && device_find(&device);

  out->n = 0;
  atomic_init(&out->first, 0);
#ifdef SLUICE_CUDA
  if (has_device)
    out->at[out->n++] = &backend_cuda;
#else
  has_device = false;
#endif
  if (choice == ENGINE_CUDA && !has_device)
    FAIL(ERR_CONFIG, "engine.backend is cuda, but %s: use auto or cpu",
#ifdef SLUICE_CUDA
         "no GPU of compute capability 8.0 or above was found, or no driver"
#else
         "this build has no CUDA (use the preset cuda)"
#endif
    );
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
  if (atomic_compare_exchange_strong(&b->first, &expected, i + 1))
    log_error("backend_failed", "backend=%s detail=%s goes_on_with=%s", b->at[i]->name, log_failure(),
              b->at[i + 1]->name);
  return ERR_OK;
}
