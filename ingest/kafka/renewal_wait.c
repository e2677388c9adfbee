/* SPDX-License-Identifier: Apache-2.0 */
/* When to try again, and the event that says why. */
#include "ingest/kafka/renewal_wait.h"

#include "base/clock.h"
#include "base/log.h"

enum { RETRY_MS = 1000 };

bool renewal_wait_is_over(const struct renewal_wait *w)
{
  return clock_now_ns() >= w->due_ns;
}

static void begin(struct renewal_wait *w)
{
  w->is_said = true;
  w->due_ns = clock_now_ns() + RETRY_MS * CLOCK_NS_PER_MS;
}

void renewal_wait_begin(struct renewal_wait *w, const char *client)
{
  if (!w->is_said)
    log_warn("kafka_client_not_renewed",
             "client=%s reason=%s note=\"the former one goes on; tried again until it works\"", client, log_failure());
  begin(w);
}

void renewal_wait_begin_first(struct renewal_wait *w, const char *client)
{
  if (!w->is_said)
    log_warn("kafka_client_not_opened", "client=%s reason=%s note=\"tried again until it works\"", client,
             log_failure());
  begin(w);
}

void renewal_wait_end(struct renewal_wait *w)
{
  *w = (struct renewal_wait){ 0 };
}
