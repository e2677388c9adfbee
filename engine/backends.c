/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/backend.h"
#include "base/log.h"
#include "kernels/device.h"

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
    FAIL(ERR_CONFIG, "engine.backend is cuda, and %s: use auto or cpu",
#ifdef SLUICE_CUDA
         "no GPU of compute capability 8.0 or above was found, or no driver"
#else
         "this build has no CUDA (preset cuda has)"
#endif
    );
  if (choice != ENGINE_CUDA)
    out->at[out->n++] = &backend_cpu;
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
