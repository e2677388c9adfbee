/* SPDX-License-Identifier: Apache-2.0 */
/* Who listens to each thread. */
#include "base/progress.h"

static _Thread_local struct progress_listener own;

void progress_note(void)
{
  if (own.heard)
    own.heard(own.context);
}

struct progress_listener progress_listener_get(void)
{
  return own;
}

void progress_listener_set(struct progress_listener listener)
{
  own = listener;
}
