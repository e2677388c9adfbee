/* SPDX-License-Identifier: Apache-2.0 */
/* The choice of the layout and of the model, and the words of the errors. */
#include "daemon/merge/merge_decide.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum { MESSAGE_BYTES = 512, NAMED_SHARDS_MAX = 16, SHARD_BYTES = sizeof " and 4294967295" };

/* The parts of one layout, in order of shard. */
struct layout {
  const struct merge_part *parts;
  size_t n;
};

static int compare_parts(const void *a, const void *b)
{
  const struct partial *x = &((const struct merge_part *)a)->head, *y = &((const struct merge_part *)b)->head;

  if (x->n_shards != y->n_shards)
    return x->n_shards < y->n_shards ? -1 : 1;
  return (x->shard > y->shard) - (x->shard < y->shard);
}

/* Return the layout of which the largest share has answered. */
static struct layout choose_layout(struct merge_part *parts, size_t n)
{
  struct layout best = { 0 };

  qsort(parts, n, sizeof *parts, compare_parts);
  for (size_t i = 0, j; i < n; i = j) {
    for (j = i; j < n && parts[j].head.n_shards == parts[i].head.n_shards; j++)
      ;
    if (!best.n || (j - i) * best.parts->head.n_shards > best.n * parts[i].head.n_shards)
      best = (struct layout){ &parts[i], j - i };
  }
  return best;
}

static const struct merge_part *find_error(const struct layout *layout)
{
  for (size_t i = 0; i < layout->n; i++) {
    if (layout->parts[i].answer.error)
      return &layout->parts[i];
  }
  return NULL;
}

/* ---- Errors ---- */

__attribute__((format(printf, 5, 6))) static err_t make_error(const struct layout *layout, enum answer_error error,
                                                              struct region *r, struct answer *out, const char *format,
                                                              ...)
{
  const struct merge_part *first = &layout->parts[0];
  char *message;
  va_list arguments;

  TRY(region_array(r, MESSAGE_BYTES, 1, &message));
  va_start(arguments, format);
  vsnprintf(message, MESSAGE_BYTES, format, arguments);
  va_end(arguments);
  *out = (struct answer){
    .id = first->answer.id,
    .space = first->answer.space,
    .error = error,
    .error_message = message,
    .is_merged = true,
    .n_parts = (uint32_t)layout->n,
    .n_shards = first->head.n_shards,
  };
  return ERR_OK;
}

/* List the missing shards: "1, 2 and 5". */
static void list_missing(const struct layout *layout, char *text, size_t size)
{
  uint32_t n_shards = layout->parts[0].head.n_shards;
  size_t at = 0, n = 0, n_missing = n_shards - layout->n, n_named = 0;

  for (uint32_t shard = 0; shard < n_shards && n_named < NAMED_SHARDS_MAX; shard++) {
    if (at < layout->n && layout->parts[at].head.shard == shard) {
      at++;
      continue;
    }
    const char *before = n_named == 0 ? "" : n_named + 1 == n_missing ? " and " : ", ";
    n += (size_t)snprintf(text + n, size - n, "%s%" PRIu32, before, shard);
    n_named++;
  }
  if (n_missing > n_named)
    snprintf(text + n, size - n, " and %zu more", n_missing - n_named);
}

/* The shards are numbered from 0 on: "shard 1 of 2" alone would read as one of two shards. */
static err_t fail_missing(const struct layout *layout, struct region *r, struct answer *out)
{
  char missing[(NAMED_SHARDS_MAX + 2) * SHARD_BYTES] = "";
  uint32_t n_shards = layout->parts[0].head.n_shards;
  bool is_one = layout->n + 1 == n_shards;

  list_missing(layout, missing, sizeof missing);
  return make_error(layout, ANSWER_PARTIAL, r, out, "%s %s %s not answered in time (the shards are 0 to %" PRIu32 ")",
                    is_one ? "shard" : "shards", missing, is_one ? "has" : "have", n_shards - 1);
}

/* Shards with other values of query.max_k may choose other numbers of candidates. */
static bool has_other_mmr(const struct partial *a, const struct partial *b)
{
  return a->candidates != b->candidates || a->diversity != b->diversity;
}

/* Return the field of a query that just one of two parts knows: the other one's daemon is of an older version. NULL:
 * there is none. */
static const char *find_unknown(const struct partial *a, const struct partial *b)
{
  return a->max_per != b->max_per         ? "max_per"
         : has_other_mmr(a, b)            ? "mmr"
         : a->boosts != b->boosts         ? "boosts"
         : a->attributes != b->attributes ? "attributes"
                                          : NULL;
}

static err_t fail_others(const struct layout *layout, const struct merge_part *other, struct region *r,
                         struct answer *out)
{
  const struct merge_part *first = &layout->parts[0];
  const char *unknown = find_unknown(&first->head, &other->head);

  if (unknown)
    return make_error(layout, ANSWER_PARTIAL, r, out,
                      "shard %" PRIu32 " and shard %" PRIu32 " are of different versions: one does not know %s",
                      first->head.shard, other->head.shard, unknown);
  return make_error(layout, ANSWER_PARTIAL, r, out,
                    "the shards have different models, so their scores cannot be compared: shard %" PRIu32
                    " has generation %" PRIu32 ", %.*s; shard %" PRIu32 " has generation %" PRIu32 ", %.*s",
                    first->head.shard, first->answer.generation, (int)first->head.model.n,
                    (const char *)first->head.model.p, other->head.shard, other->answer.generation,
                    (int)other->head.model.n, (const char *)other->head.model.p);
}

static err_t pass_error(const struct layout *layout, const struct merge_part *part, struct region *r,
                        struct answer *out)
{
  return make_error(layout, part->answer.error, r, out, "shard %" PRIu32 " of %" PRIu32 ": %s", part->head.shard,
                    part->head.n_shards, part->answer.error_message);
}

/* ---- Answers ---- */

/* Can the hits of two parts be joined? Generations may have the same file: that of `dot` has no weights. */
static bool can_join(const struct merge_part *a, const struct merge_part *b)
{
  return a->answer.generation == b->answer.generation && span_equal(a->head.model, b->head.model) &&
         !find_unknown(&a->head, &b->head);
}

/* List the parts with hits that can be joined with one, and return their number. */
static size_t list_model(const struct layout *layout, const struct merge_part *one, const struct merge_part **out)
{
  size_t n = 0;

  for (size_t i = 0; i < layout->n; i++) {
    if (!layout->parts[i].answer.error && can_join(&layout->parts[i], one))
      out[n++] = &layout->parts[i];
  }
  return n;
}

/* List the parts that can be joined, as many as possible; of equally many, those with the first shard. Return their
 * number; 0: all have errors. */
static size_t list_most(const struct layout *layout, const struct merge_part **out)
{
  const struct merge_part *best = &layout->parts[0];
  size_t n_best = 0;

  for (size_t i = 0; i < layout->n; i++) {
    size_t n = list_model(layout, &layout->parts[i], out);
    if (n > n_best) {
      best = &layout->parts[i];
      n_best = n;
    }
  }
  return list_model(layout, best, out);
}

static const struct merge_part *find_other(const struct layout *layout)
{
  for (size_t i = 1; i < layout->n; i++) {
    if (!can_join(&layout->parts[i], &layout->parts[0]))
      return &layout->parts[i];
  }
  return NULL;
}

err_t merge_decide(const struct kernels *kernels, struct merge_part *parts, size_t n, struct region *r,
                   struct answer *out)
{
  struct layout layout = choose_layout(parts, n);
  const struct merge_part *error = find_error(&layout), *other = find_other(&layout);
  bool is_strict = !layout.parts[0].head.allow_partial;
  const struct merge_part **joined;

  if (is_strict && error)
    return pass_error(&layout, error, r, out);
  if (is_strict && layout.n < layout.parts[0].head.n_shards)
    return fail_missing(&layout, r, out);
  if (is_strict && other)
    return fail_others(&layout, other, r, out);
  TRY(region_array(r, layout.n, sizeof *joined, &joined));
  size_t n_joined = list_most(&layout, joined);
  return n_joined ? merge_join(kernels, joined, n_joined, r, out) : pass_error(&layout, error, r, out);
}
