/* SPDX-License-Identifier: Apache-2.0 */
/* Scans of the dead-letter topic. */
#include "daemon/ctl/letters/ctl_letters.h"

#include <stdio.h>

#include "daemon/ctl/ctl_scan.h"

err_t ctl_letters_place(const char *text, struct ctl_letter_place *out)
{
  int n = 0;

  if (sscanf(text, "%9d:%18lld%n", &out->partition, (long long *)&out->offset, &n) != 2 || text[n] != '\0' ||
      out->partition < 0 || out->offset < 0)
    FAIL(ERR_USAGE, "%s is not the place of a letter; list shows them, such as 0:17", text);
  return ERR_OK;
}

struct visiting {
  const struct ctl_letters_selection *selection;
  ctl_letters_visit visit;
  void *context;
  uint64_t n;
};

static err_code_t visit_record(void *context, const struct topic_scan_record *record)
{
  struct visiting *v = context;
  struct ctl_letter letter;

  if (!ctl_letter_read(record, &letter) || !ctl_letter_matches(&letter, &v->selection->filter))
    return ERR_OK;
  v->n++;
  return v->visit(v->context, &letter);
}

static err_t visit_range(struct ctl_context *ctx, struct visiting *v, const struct topic_scan_range *range)
{
  return ctl_scan_visit_all(ctx, ctx->config->catalogue.dead_letter_topic, range, visit_record, v);
}

static err_t visit_places(struct ctl_context *ctx, struct visiting *v)
{
  for (size_t i = 0; i < v->selection->n_places; i++) {
    const struct ctl_letter_place *place = &v->selection->places[i];
    struct topic_scan_range range = { .has_place = true, .partition = place->partition, .offset = place->offset };
    uint64_t n_before = v->n;
    TRY(visit_range(ctx, v, &range));
    if (v->n == n_before)
      FAIL(ERR_SYSTEM, "there is no letter %d:%lld in topic %s", place->partition, (long long)place->offset,
           ctx->config->catalogue.dead_letter_topic);
  }
  return ERR_OK;
}

err_t ctl_letters_visit_all(struct ctl_context *ctx, const struct ctl_letters_selection *selection, uint64_t newest,
                            ctl_letters_visit visit, void *context)
{
  struct visiting v = { selection, visit, context, 0 };
  const struct topic_scan_range range = {
    .newest = newest ? (int64_t)newest : TOPIC_SCAN_FROM_FIRST,
    .since_unix_ms = selection->since_unix_ms,
  };

  return selection->n_places ? visit_places(ctx, &v) : visit_range(ctx, &v, &range);
}
