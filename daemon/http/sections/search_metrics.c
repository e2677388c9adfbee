/* SPDX-License-Identifier: Apache-2.0 */
/* The metrics with the labels `space`, `generation` and `method`: one table row each. */
#include "daemon/http/sections/search_metrics.h"

#include "daemon/http/print/metric_print.h"

struct metric {
  const char *name;
  const char *help;
  size_t offset; /* of the counter in struct search_row; 0: the histogram */
};

#define SECONDS "sluice_search_seconds"

static const struct metric metrics[] = {
  { SECONDS, "Seconds that the search of one batch of queries took", 0 },
  { "sluice_searched_queries_total", "Queries searched", offsetof(struct search_row, n_queries) },
  { "sluice_searched_proven_total", "Of these, queries whose answers are proven to be exact",
    offsetof(struct search_row, n_proven) },
  { "sluice_searched_items_total", "Items of the space, summed over the queries searched",
    offsetof(struct search_row, n_items) },
  { "sluice_searched_scored_items_total", "Of these, items that were scored in full; the others were pruned",
    offsetof(struct search_row, n_scored) },
};

static void print_value(const struct metric *metric, const struct engine_space_info *space,
                        const struct search_row *row, FILE *out)
{
  char generation[16];
  struct metric_labels labels = {
    { { "space", space->name }, { "generation", generation }, { "method", atomic_load(&row->method) } }
  };

  snprintf(generation, sizeof generation, "%u", space->generation);

  if (metric->offset == 0)
    metric_print_hist(out, metric->name, &labels, &row->batch_us);
  else
    metric_print_count(out, metric->name, &labels,
                       atomic_load((const _Atomic uint64_t *)(const void *)((const char *)row + metric->offset)));
}

void search_metrics_print(const struct search_counters *search_counters, struct engine *engine, FILE *out)
{
  for (size_t m = 0; m < sizeof metrics / sizeof metrics[0]; m++) {
    metric_print_head(out, metrics[m].name, metrics[m].offset ? "counter" : "histogram", metrics[m].help);
    for (size_t s = 0; s < engine_n_spaces(engine); s++) {
      struct engine_space_info info;
      size_t n = 0;
      if (!engine_space_get(engine, s, &info))
        continue;
      const struct search_row *rows = search_counters_of(search_counters, info.number, &n);
      for (size_t i = 0; i < n; i++)
        print_value(&metrics[m], &info, &rows[i], out);
    }
  }
}
