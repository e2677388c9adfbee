/* SPDX-License-Identifier: Apache-2.0 */
/* Print answers as tables. */
#include "daemon/ctl/query/ctl_answer.h"

#include <float.h>
#include <inttypes.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/value.h"
#include "daemon/ctl/text/ctl_format.h"
#include "daemon/ctl/text/ctl_print.h"

enum { KEY_COLUMNS_MIN = 3, SCORE_COLUMNS = 12 };

static size_t key_columns(const json_t *hits)
{
  size_t widest = KEY_COLUMNS_MIN;
  size_t i;
  json_t *hit;

  json_array_foreach(hits, i, hit)
  {
    size_t n = ctl_print_key(json_object_get(hit, "key"), NULL);
    widest = n > widest ? n : widest;
  }
  return widest;
}

/* Does a hit have this field? */
static bool have(const json_t *hits, const char *name)
{
  size_t i;
  json_t *hit;

  json_array_foreach(hits, i, hit)
  {
    if (json_object_get(hit, name))
      return true;
  }
  return false;
}

static void print_value(const json_t *value, FILE *out)
{
  if (!value)
    return;
  fputs("  ", out);
  if (json_is_string(value))
    ctl_print_text(json_string_value(value), out);
  else if (json_is_integer(value))
    fprintf(out, "%lld", (long long)json_integer_value(value));
  else
    fputs(json_is_true(value) ? "true" : "false", out);
}

/* As JSON, which says what type a value has. */
static void print_attributes(const json_t *attributes, FILE *out)
{
  AUTO(mem_free) char *text = attributes ? json_dumps(attributes, JSON_REAL_PRECISION(VALUE_SHOWN_DIGITS)) : NULL;

  if (!text)
    return;
  fputs("  ", out);
  ctl_print_json(span_of_str(text), out);
}

static void print_hits(const json_t *hits, FILE *out)
{
  size_t n_columns = key_columns(hits);
  bool has_similarities = have(hits, "similarity");
  size_t i;
  json_t *hit;

  fputs("  rank  key", out);
  ctl_print_spaces(n_columns - strlen("key"), out);
  fprintf(out, "  %*s", SCORE_COLUMNS, "score");
  if (has_similarities)
    fprintf(out, "  %*s", SCORE_COLUMNS, "similarity");
  fputs(have(hits, "value") ? "  value" : "", out);
  fputs(have(hits, "attributes") ? "  attributes\n" : "\n", out);
  json_array_foreach(hits, i, hit)
  {
    fprintf(out, "  %4zu  ", i + 1);
    ctl_print_spaces(n_columns - ctl_print_key(json_object_get(hit, "key"), out), out);
    fprintf(out, "  %*.6g", SCORE_COLUMNS, json_number_value(json_object_get(hit, "score")));
    if (has_similarities)
      fprintf(out, "  %*.6g", SCORE_COLUMNS, json_number_value(json_object_get(hit, "similarity")));
    print_value(json_object_get(hit, "value"), out);
    print_attributes(json_object_get(hit, "attributes"), out);
    fputc('\n', out);
  }
}

static uint64_t number(const json_t *answer, const char *group, const char *name)
{
  const json_t *value = json_object_get(group ? json_object_get(answer, group) : answer, name);

  return json_integer_value(value) > 0 ? (uint64_t)json_integer_value(value) : 0;
}

static void print_receipt(const json_t *answer, FILE *out)
{
  const json_t *receipt = json_object_get(answer, "receipt");
  const json_t *bound = json_object_get(receipt, "bound");
  const char *method = json_string_value(json_object_get(answer, "method"));

  fprintf(out, "  method %s: ", method && *method ? method : "?");
  if (json_is_true(json_object_get(receipt, "exact")))
    fputs("exact", out);
  else if (json_is_number(bound) && json_number_value(bound) < (double)FLT_MAX) /* the largest one bounds nothing */
    fprintf(out, "approximate, nothing that was missed scores above %.6g", json_number_value(bound));
  else
    fputs("approximate", out);
}

/* Say that shards are missing. Only the answer of a merge has parts. */
static void print_parts(const json_t *answer, FILE *out)
{
  uint64_t n_answered = number(answer, "parts", "answered"), n_shards = number(answer, "parts", "of");

  if (n_answered < n_shards)
    fprintf(out, "  %" PRIu64 " of %" PRIu64 " shards have answered: items may be missing\n", n_answered, n_shards);
}

static void print_effort(const json_t *answer, FILE *out)
{
  uint64_t n_candidates = number(answer, "counts", "candidates");
  uint64_t n_admitted = number(answer, "counts", "admitted");
  bool has_admitted = json_object_get(json_object_get(answer, "counts"), "admitted");

  fprintf(out, "; scored %s of %s items", ctl_format_count(number(answer, "counts", "scored")).s,
          ctl_format_count(number(answer, "counts", "items")).s);
  if (has_admitted && n_admitted != number(answer, "counts", "items"))
    fprintf(out, ", %s admitted", ctl_format_count(n_admitted).s);
  if (n_candidates)
    fprintf(out, " (%s candidates)", ctl_format_count(n_candidates).s);
  fprintf(out, "; queued %s", ctl_format_span((int64_t)number(answer, "times", "queued_us") * CLOCK_NS_PER_US).s);
  fprintf(out, ", searched %s; ", ctl_format_span((int64_t)number(answer, "times", "searched_us") * CLOCK_NS_PER_US).s);
}

static void print_epoch(const json_t *answer, FILE *out)
{
  fprintf(out, "epoch %llu", (unsigned long long)number(answer, NULL, "epoch"));
  if (json_object_get(answer, "time_unix_ms"))
    fprintf(out, " of %s", ctl_format_time((int64_t)number(answer, NULL, "time_unix_ms")).s);
  fputc('\n', out);
}

/* Say in words what a verdict means. */
static const char *words_of(const char *verdict)
{
  static const char *const rows[][2] = {
    { "UNKNOWN", "a shard that has not answered may have it" },
    { "NO_ITEM", "there is no such item" },
    { "NO_PART", "it has no part in the space" },
    { "EXPIRED", "it is expired" },
    { "EMBARGOED", "it is embargoed" },
    { "EXCLUDED", "the query excludes it" },
    { "SEEN", "the user has seen it" },
    { "FILTERED", "the filter does not admit it" },
    { "CROWDED_OUT", "better items have its value already: as many as max_per admits" },
    { "PASSED_OVER", "it is among the candidates of mmr, and others were chosen" },
    { "TOO_LOW", "its score is below min_score" },
    { "MISSED", "the method has not found it, though it is better than the last hit" },
  };

  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    if (strcmp(verdict, rows[i][0]) == 0)
      return rows[i][1];
  }
  return verdict;
}

static void print_explanation(const json_t *explanation, FILE *out)
{
  const char *verdict = json_string_value(json_object_get(explanation, "verdict"));
  const json_t *score = json_object_get(explanation, "score");

  fputs("  ", out);
  ctl_print_key(json_object_get(explanation, "key"), out);
  fputs(": ", out);
  if (verdict && strcmp(verdict, "HIT") == 0)
    fprintf(out, "hit %llu", (unsigned long long)number(explanation, NULL, "rank"));
  else if (verdict && strcmp(verdict, "OUTRANKED") == 0)
    fprintf(out, "outranked by %.6g", json_number_value(json_object_get(explanation, "below_last_hit")));
  else
    fputs(words_of(verdict ? verdict : "?"), out);
  if (score)
    fprintf(out, "; its score is %.6g", json_number_value(score));
  fputc('\n', out);
}

static void print_explanations(const json_t *explanations, FILE *out)
{
  size_t i;
  json_t *explanation;

  json_array_foreach(explanations, i, explanation) print_explanation(explanation, out);
}

static void print_likes_missing(const json_t *keys, FILE *out)
{
  size_t i;
  json_t *key;

  json_array_foreach(keys, i, key)
  {
    fputs("  ", out);
    ctl_print_key(key, out);
    fputs(" has no part in the space: hits are like the others\n", out);
  }
}

void ctl_answer_print(const json_t *answer, FILE *out)
{
  const json_t *hits = json_object_get(answer, "hits");
  const char *id = json_string_value(json_object_get(answer, "id"));
  const char *space = json_string_value(json_object_get(answer, "space"));
  size_t n_hits = json_array_size(hits);

  ctl_print_text(id ? id : "", out);
  fprintf(out, ": %zu %s in ", n_hits, ctl_format_plural(n_hits, "hit", "hits"));
  ctl_print_text(space ? space : "", out);
  fputc('\n', out);
  if (n_hits)
    print_hits(hits, out);
  print_explanations(json_object_get(answer, "explanations"), out);
  print_likes_missing(json_object_get(answer, "likes_missing"), out);
  print_parts(answer, out);
  print_receipt(answer, out);
  print_effort(answer, out);
  print_epoch(answer, out);
}
