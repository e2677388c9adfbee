/* SPDX-License-Identifier: Apache-2.0 */
/* Print answers as tables, safely: text from the network must not control the terminal. */
#include "daemon/ctl/ctl_answer.h"

#include <string.h>

#include "base/clock.h"
#include "daemon/ctl/ctl_format.h"

enum { KEY_COLUMNS_MIN = 3, SCORE_COLUMNS = 12 };

/* Print a character; print nothing if out is NULL, because then only columns are counted. */
static void put(FILE *out, char c)
{
  if (out)
    fputc(c, out);
}

/* Print text with control characters as \xHH. Returns the number of columns: one per character, right for most
 * scripts. */
static size_t print_text(const char *text, FILE *out)
{
  size_t n_columns = 0;

  for (const char *c = text; *c; c++) {
    unsigned char byte = (unsigned char)*c;
    bool is_c1 = byte == 0xc2 && (unsigned char)c[1] >= 0x80 && (unsigned char)c[1] < 0xa0;
    if (byte >= 0x20 && byte != 0x7f && !is_c1) {
      put(out, *c);
      n_columns += (byte & 0xc0) != 0x80;
      continue;
    }
    if (is_c1)
      byte = (unsigned char)*++c;
    if (out)
      fprintf(out, "\\x%02x", byte);
    n_columns += 4;
  }
  return n_columns;
}

static size_t print_key(const json_t *key, FILE *out)
{
  const json_t *coded = json_object_get(key, "base64");

  if (!coded)
    return print_text(json_is_string(key) ? json_string_value(key) : "", out);
  return print_text("base64:", out) + print_text(json_is_string(coded) ? json_string_value(coded) : "", out);
}

static void pad(size_t n, FILE *out)
{
  for (size_t i = 0; i < n; i++)
    fputc(' ', out);
}

static size_t key_columns(const json_t *hits)
{
  size_t widest = KEY_COLUMNS_MIN;
  size_t i;
  json_t *hit;

  json_array_foreach(hits, i, hit)
  {
    size_t n = print_key(json_object_get(hit, "key"), NULL);
    widest = n > widest ? n : widest;
  }
  return widest;
}

static void print_hits(const json_t *hits, FILE *out)
{
  size_t n_columns = key_columns(hits);
  size_t i;
  json_t *hit;

  fputs("  rank  key", out);
  pad(n_columns - strlen("key"), out);
  fprintf(out, "  %*s\n", SCORE_COLUMNS, "score");
  json_array_foreach(hits, i, hit)
  {
    fprintf(out, "  %4zu  ", i + 1);
    pad(n_columns - print_key(json_object_get(hit, "key"), out), out);
    fprintf(out, "  %*.6g\n", SCORE_COLUMNS, json_number_value(json_object_get(hit, "score")));
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
  else if (json_is_number(bound))
    fprintf(out, "approximate, no other item scores above %.6g", json_number_value(bound));
  else
    fputs("approximate", out);
}

static void print_effort(const json_t *answer, FILE *out)
{
  uint64_t n_candidates = number(answer, "counts", "candidates");

  fprintf(out, "; scored %s of %s items", ctl_format_count(number(answer, "counts", "scored")).s,
          ctl_format_count(number(answer, "counts", "items")).s);
  if (n_candidates)
    fprintf(out, " (%s candidates)", ctl_format_count(n_candidates).s);
  fprintf(out, "; queued %s", ctl_format_span((int64_t)number(answer, "times", "queued_us") * CLOCK_NS_PER_US).s);
  fprintf(out, ", searched %s; epoch %llu\n",
          ctl_format_span((int64_t)number(answer, "times", "searched_us") * CLOCK_NS_PER_US).s,
          (unsigned long long)number(answer, NULL, "epoch"));
}

char *ctl_answer_error(const json_t *answer)
{
  const json_t *error = json_object_get(answer, "error");
  const char *code = json_string_value(json_object_get(error, "code"));
  const char *message = json_string_value(json_object_get(error, "message"));
  char *text = NULL;

  if (!json_is_object(error))
    return NULL;
  if (asprintf(&text, "%s: %s", code ? code : "UNKNOWN", message ? message : "") < 0)
    return NULL;
  return text;
}

void ctl_answer_print(const json_t *answer, FILE *out)
{
  const json_t *hits = json_object_get(answer, "hits");
  const char *id = json_string_value(json_object_get(answer, "id"));
  const char *space = json_string_value(json_object_get(answer, "space"));
  size_t n_hits = json_array_size(hits);

  print_text(id ? id : "", out);
  fprintf(out, ": %zu %s in ", n_hits, ctl_plural(n_hits, "hit", "hits"));
  print_text(space ? space : "", out);
  fputc('\n', out);
  if (n_hits)
    print_hits(hits, out);
  print_receipt(answer, out);
  print_effort(answer, out);
}
