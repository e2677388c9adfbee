/* SPDX-License-Identifier: Apache-2.0 */
/* sluicectl wait: wait until the daemon is ready, and say in between why it is not. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "daemon/ctl/ctl_context.h"
#include "daemon/ctl/text/ctl_option.h"
#include "daemon/ctl/text/ctl_say.h"

enum { PERIOD_MS = 200, REASON_BYTES = 256, TIMEOUT_S_MAX = 1000000 };

/* Ask the daemon once. Returns false with the reason if it is not ready, or does not answer. */
static bool is_ready(struct ctl_context *ctx, char *reason)
{
  struct span line;
  bool is_ready = false;

  if (http_get_readyz(ctx->http, &is_ready, &line) != ERR_OK)
    snprintf(reason, REASON_BYTES, "%s", err_message());
  else
    snprintf(reason, REASON_BYTES, "%.*s", (int)line.n, (const char *)line.p);
  return is_ready;
}

/* timeout_s  0: no limit */
static err_t await_ready(struct ctl_context *ctx, uint64_t timeout_s)
{
  char said[REASON_BYTES] = "", reason[REASON_BYTES];
  int64_t until_ns = clock_now_ns() + (int64_t)timeout_s * CLOCK_NS_PER_S;

  while (!is_ready(ctx, reason)) {
    if (timeout_s && clock_now_ns() >= until_ns)
      FAIL(ERR_SYSTEM, "gave up after %" PRIu64 " s: %s", timeout_s, reason);
    if (strcmp(reason, said) != 0)
      ctl_say("%s", strcpy(said, reason));
    clock_sleep_ns(PERIOD_MS * CLOCK_NS_PER_MS);
  }
  puts(reason);
  return ERR_OK;
}

static err_t run_wait(const struct ctl_options *options, int argc, char **argv)
{
  AUTO(ctl_context_close) struct ctl_context *ctx = NULL;
  uint64_t timeout_s = 0;
  const struct ctl_option known[] = { { "timeout-s", .number = &timeout_s, .min = 1, .max = TIMEOUT_S_MAX }, { 0 } };

  TRY(ctl_option_take_only(known, argc, argv));
  TRY(ctl_context_open_for_http(options, &ctx));
  return await_ready(ctx, timeout_s);
}

const struct ctl_command ctl_wait_command = {
  .name = "wait",
  .arguments = "[--timeout-s N]",
  .summary = "wait until the daemon is ready",
  .help = "  --timeout-s N   give up after N seconds (default: never)\n"
          "\n"
          "The daemon is ready when it has read the catalogue up to where it ended at the start, and takes queries.\n"
          "While it is not, the reason is printed each time it changes.\n",
  .run = run_wait,
};
