/* SPDX-License-Identifier: Apache-2.0 */
/* Print the rows of a comparison as tables for people or as JSON for programs. */
#include "daemon/ctl/eval/ctl_eval_report.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>

#include "daemon/ctl/text/ctl_format.h"

enum { NAME_COLUMNS_MIN = 6, LABEL_BYTES = 160 };

/* Make the row's label: "exact = brute_force" if the given name stands for another. */
static void print_label(const struct ctl_eval_row *row, char label[LABEL_BYTES])
{
  if (strcmp(row->method, row->ran) == 0)
    snprintf(label, LABEL_BYTES, "%s", row->ran);
  else
    snprintf(label, LABEL_BYTES, "%s = %s", row->method, row->ran);
}

static int label_columns(const struct ctl_eval_row *rows, size_t n)
{
  char label[LABEL_BYTES];
  size_t widest = NAME_COLUMNS_MIN;

  for (size_t i = 0; i < n; i++) {
    print_label(&rows[i], label);
    widest = strlen(label) > widest ? strlen(label) : widest;
  }
  return (int)widest;
}

static void print_head(size_t k, int n_columns, FILE *out)
{
  size_t ranks[CTL_EVAL_RECALLS_MAX], n_ranks = ctl_eval_recall_ranks(k, ranks);
  char recall[32];

  fprintf(out, "%-*s", n_columns, "method");
  for (size_t r = 0; r < n_ranks; r++) {
    snprintf(recall, sizeof recall, "recall@%zu", ranks[r]);
    fprintf(out, "  %10s", recall);
  }
  fprintf(out, "  %6s  %10s  %10s  %9s  %9s\n", "proven", "candidates", "scored", "median ms", "p95 ms");
}

/* Print milliseconds with at least three digits and without an exponent. */
static void print_ms(double ms, FILE *out)
{
  fprintf(out, "  %9.*f", ms < 10 ? 3 : ms < 1000 ? 1 : 0, ms);
}

static void print_row(const struct ctl_eval_row *row, int n_columns, FILE *out)
{
  size_t ranks[CTL_EVAL_RECALLS_MAX], n_ranks = ctl_eval_recall_ranks(row->k, ranks);
  char label[LABEL_BYTES];

  print_label(row, label);
  fprintf(out, "%-*s", n_columns, label);
  for (size_t r = 0; r < n_ranks; r++)
    fprintf(out, "  %10.3f", row->recall[r]);
  fprintf(out, "  %6.3f", row->proven);
  fprintf(out, "  %10s", row->candidates > 0 ? ctl_format_count((uint64_t)llround(row->candidates)).s : "-");
  fprintf(out, "  %10s", ctl_format_count((uint64_t)llround(row->scored)).s);
  print_ms(row->median_ms, out);
  print_ms(row->p95_ms, out);
  fputc('\n', out);
}

/* Print the table of hit rates. Table 4 of the paper has the same ratios and times. */
static void print_hit_rates(const struct ctl_eval_row *rows, size_t n, int n_columns, FILE *out)
{
  char label[LABEL_BYTES];

  fprintf(out, "%-*s", n_columns, "method");
  for (size_t r = 0; r < CTL_EVAL_N_RANKS && ctl_eval_ranks[r] <= rows[0].k; r++)
    fprintf(out, "  %*s%zu  ratio", ctl_eval_ranks[r] < 10 ? 4 : 3, "HR@", ctl_eval_ranks[r]);
  fprintf(out, "  %9s\n", "median ms");
  for (size_t i = 0; i < n; i++) {
    print_label(&rows[i], label);
    fprintf(out, "%-*s", n_columns, label);
    for (size_t r = 0; r < CTL_EVAL_N_RANKS && ctl_eval_ranks[r] <= rows[i].k; r++) {
      fprintf(out, "  %*.3f", ctl_eval_ranks[r] < 100 ? 5 : 6, rows[i].hit_rate[r]);
      if (isnan(rows[i].hit_ratio[r]))
        fputs("      -", out);
      else
        fprintf(out, "  %.3f", rows[i].hit_ratio[r]);
    }
    print_ms(rows[i].median_ms, out);
    fputc('\n', out);
  }
  fputc('\n', out);
}

/* Report a method that found fewer than k hits for some query, and why. */
static void print_short(const struct ctl_eval_row *row, size_t n_items, FILE *out)
{
  if (row->n_short == 0)
    return;
  fprintf(out, "%s: %s of %s %s fewer than %zu hits (fewest: %zu), because ", row->method,
          ctl_format_count(row->n_short).s, ctl_format_count(row->n).s,
          ctl_format_plural(row->n_short, "query has", "queries have"), row->k, row->min_hits);
  if (n_items < row->k)
    fprintf(out, "%s only %s %s to find\n", ctl_format_plural(n_items, "there is", "there are"),
            ctl_format_count(n_items).s, ctl_format_plural(n_items, "item", "items"));
  else if (row->has_admitted && row->admitted < row->k)
    fprintf(out, "the filter admits only %s %s\n", ctl_format_count(row->admitted).s,
            ctl_format_plural(row->admitted, "item", "items"));
  else if (row->proven == 1)
    fputs("no others can be: --max-per, --min-score or the filter leaves them out\n", out);
  else
    fputs("the method has too few candidates, or --max-per or --min-score leaves some out: try a larger argument\n",
          out);
}

void ctl_eval_report_print(const struct ctl_eval_row *rows, size_t n, size_t n_items, FILE *out)
{
  int n_columns = label_columns(rows, n);

  if (rows[0].has_targets)
    print_hit_rates(rows, n, n_columns, out);
  print_head(rows[0].k, n_columns, out);
  for (size_t i = 0; i < n; i++)
    print_row(&rows[i], n_columns, out);
  for (size_t i = 0; i < n; i++)
    print_short(&rows[i], n_items, out);
  fputs("Choose the fastest row that finds enough. ", out);
  if (rows[0].has_targets)
    fputs("HR@n: share of queries whose target is among the first n hits; ratio: HR@n divided by that of exact, "
          "as in Table 4 of the Mixture-of-Logits paper. ",
          out);
  fputs("recall@n: share of the exact first n among the first n hits. proven: share of answers whose receipt says "
        "exact. scored: items scored in full; bounds keep it small.\n",
        out);
}

/* Return null for NAN: exact finds no target. */
static json_t *ratio_json(double ratio)
{
  return isnan(ratio) ? json_null() : json_real(ratio);
}

static void add_rates(const struct ctl_eval_row *row, json_t *json)
{
  size_t ranks[CTL_EVAL_RECALLS_MAX], n_ranks = ctl_eval_recall_ranks(row->k, ranks);
  char name[32];

  for (size_t r = 0; row->has_targets && r < CTL_EVAL_N_RANKS && ctl_eval_ranks[r] <= row->k; r++) {
    snprintf(name, sizeof name, "hr_at_%zu", ctl_eval_ranks[r]);
    json_object_set_new(json, name, json_real(row->hit_rate[r]));
    snprintf(name, sizeof name, "hr_ratio_at_%zu", ctl_eval_ranks[r]);
    json_object_set_new(json, name, ratio_json(row->hit_ratio[r]));
  }
  for (size_t r = 0; r < n_ranks; r++) {
    snprintf(name, sizeof name, "recall_at_%zu", ranks[r]);
    json_object_set_new(json, name, json_real(row->recall[r]));
  }
  json_object_set_new(json, "recall_at_k", json_real(row->recall[n_ranks - 1]));
}

/* What was given to all queries, so that rows of several runs can be told apart. */
static void add_common(const struct query *common, uint32_t k, json_t *json)
{
  struct query query = *common;

  query.k = k;
  if (query.max_per.n > 0)
    json_object_set_new(json, "max_per",
                        json_pack("{s:s%, s:I}", "attribute", (const char *)query.max_per.attribute.p,
                                  (size_t)query.max_per.attribute.n, "n", (json_int_t)query.max_per.n));
  if (query.mmr.diversity > 0)
    json_object_set_new(json, "mmr",
                        json_pack("{s:f, s:I}", "diversity", query.mmr.diversity, "candidates",
                                  (json_int_t)query_mmr_candidates(&query, QUERY_MMR_MAX)));
  if (query.has_min_score)
    json_object_set_new(json, "min_score", json_real((double)query.min_score));
  if (query.n_boosts > 0)
    json_object_set_new(json, "now_unix_ms", json_integer(query.now_unix_ms));
}

void ctl_eval_report_print_json(const struct ctl_eval_row *row, const struct ctl_eval_setting *setting, FILE *out)
{
  json_t *json = json_pack("{s:s, s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:s}", "method", row->method, "ran", row->ran,
                           "similarity", setting->similarity, "items", (json_int_t)setting->n_items, "queries",
                           (json_int_t)row->n, "k", (json_int_t)row->k, "batch", (json_int_t)setting->batch, "threads",
                           (json_int_t)setting->n_threads, "isa", setting->isa);

  add_rates(row, json);
  json_object_set_new(json, "proven_exact", json_real(row->proven));
  json_object_set_new(json, "candidates", json_real(row->candidates));
  json_object_set_new(json, "scored", json_real(row->scored));
  json_object_set_new(json, "admitted", row->has_admitted ? json_integer((json_int_t)row->admitted) : json_null());
  add_common(setting->common, (uint32_t)row->k, json);
  json_object_set_new(json, "short_queries", json_integer((json_int_t)row->n_short));
  json_object_set_new(json, "fewest_hits", json_integer((json_int_t)row->min_hits));
  json_object_set_new(json, "timed_batches", json_integer((json_int_t)row->n_timed));
  json_object_set_new(json, "median_ms", json_real(row->median_ms));
  json_object_set_new(json, "p95_ms", json_real(row->p95_ms));
  if (json_dumpf(json, out, JSON_COMPACT | JSON_PRESERVE_ORDER) == 0)
    fputc('\n', out);
  json_decref(json);
}
