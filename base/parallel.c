/* SPDX-License-Identifier: Apache-2.0 */
/* Starting threads for one piece of work, and handing the failure of one of them to the caller. */
#include "base/parallel.h"

#include "base/errand.h"

err_t parallel_run(size_t n, parallel_body body, void *context)
{
  struct errand errands[PARALLEL_MAX - 1];
  const struct errand *failed = NULL;
  size_t n_started = 0;

  /* If one cannot be started, the others do its work too. */
  while (n_started + 1 < n && n_started + 1 < PARALLEL_MAX &&
         errand_begin("parallel", body, context, &errands[n_started]))
    n_started++;
  err_code_t err = body(context);
  for (size_t i = 0; i < n_started; i++) {
    errand_join(&errands[i]);
    if (errands[i].failure.code != ERR_OK)
      failed = &errands[i];
  }
  if (err != ERR_OK || !failed)
    return err;
  return err_give_back(&failed->failure);
}
