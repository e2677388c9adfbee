/* SPDX-License-Identifier: Apache-2.0 */
/* Rounds: which queries take part in one, and what becomes of what it has found.
 *
 * A query with a max_per and boosts has rounds in rounds: each one that its max_per asks for is a search with boosts.
 */
#include "engine/search_rounds.h"

#include "base/progress.h"
#include "engine/boosts/boosted_search.h"
#include "engine/max_per.h"

/* A query that takes rounds. */
struct long_search {
  struct max_per_search *limited; /* NULL: it has no max_per */
  struct boosted_search *boosted; /* NULL: it has no boosts */
};

/* The queries of a batch that have no error, and those of them that take rounds. */
struct asked {
  struct group round;        /* what is searched next */
  struct long_search *longs; /* [n] */
  size_t n;
};

static void add_to_round(struct group *round, const struct query *query, const struct admit *admit,
                         struct answer *answer)
{
  round->queries[round->n] = query;
  round->admits[round->n] = admit;
  round->answers[round->n++] = answer;
}

static bool is_done(const struct long_search *l)
{
  return l->limited ? l->limited->is_done : l->boosted->is_done;
}

static void add_next(struct group *round, struct long_search *l)
{
  if (l->boosted)
    add_to_round(round, &l->boosted->plain, &l->boosted->admit, &l->boosted->found);
  else
    add_to_round(round, &l->limited->wider, &l->limited->admit, &l->limited->found);
}

/* ---- Beginning ---- */

static err_t begin_boosted(struct search *s, const struct query *query, struct boosted_search **out)
{
  const struct engine *e = s->searcher->engine;
  struct region *kept = &s->searcher->kept;

  const struct boosted_target on = { .arena = s->arena,
                                     .in = s->in,
                                     .columns = s->in->on[s->backend],
                                     .attributes = &e->attributes,
                                     .kernels = e->kernels,
                                     .filters = search_groups_target(s),
                                     .held = &s->admission,
                                     .is_exact = s->row->is_exact };

  TRY(region_array(kept, 1, sizeof **out, out));
  return boosted_search_begin(&on, query, kept, *out);
}

static err_t begin_long(struct search *s, const struct query *query, const struct admit *admit, struct answer *answer,
                        struct long_search *out)
{
  struct region *kept = &s->searcher->kept;

  if (query->max_per.n) {
    TRY(region_array(kept, 1, sizeof *out->limited, &out->limited));
    max_per_begin(s->arena, &s->searcher->engine->attributes, query, admit, answer, out->limited);
    query = &out->limited->wider;
    admit = &out->limited->admit;
    answer = &out->limited->found;
  }
  if (query->n_boosts == 0)
    return ERR_OK;
  TRY(begin_boosted(s, query, &out->boosted));
  return boosted_search_start(out->boosted, query, admit, answer, kept);
}

static size_t count_long(const struct query *const *queries, size_t n)
{
  size_t n_long = 0;

  for (size_t i = 0; i < n; i++)
    n_long += query_takes_rounds(queries[i]);
  return n_long;
}

static err_t begin_rounds(struct search *s, const struct query *const *queries, size_t n, struct answer *answers,
                          struct asked *out)
{
  struct region *kept = &s->searcher->kept;

  *out = (struct asked){ 0 };
  TRY(search_groups_init(kept, n, &out->round));
  TRY(region_array(kept, count_long(queries, n), sizeof *out->longs, &out->longs));
  for (size_t i = 0; i < n; i++) {
    const struct admit *admit = &s->admission.admits[i];
    if (answers[i].error)
      continue;
    if (!query_takes_rounds(queries[i])) {
      add_to_round(&out->round, queries[i], admit, &answers[i]);
      continue;
    }
    struct long_search *l = &out->longs[out->n++];
    TRY(begin_long(s, queries[i], admit, &answers[i], l));
    add_next(&out->round, l);
  }
  return ERR_OK;
}

/* ---- Taking ---- */

/* Take what a search with boosts has found, all rounds of it, as one round of a max_per. The next one starts anew. */
static err_t take_limited(struct search *s, struct long_search *l)
{
  struct region *kept = &s->searcher->kept, *scratch = &s->searcher->scratch;

  if (l->boosted)
    TRY(boosted_search_write(l->boosted, scratch));
  TRY(max_per_take(l->limited, kept, scratch));
  if (l->limited->is_done || !l->boosted)
    return ERR_OK;
  return boosted_search_start(l->boosted, &l->limited->wider, &l->limited->admit, &l->limited->found, kept);
}

/* Take what the searches with boosts have found. Their scans run together. */
static err_t take_boosted(struct search *s, struct asked *asked)
{
  struct boosted_scan **scans;
  size_t n = 0;

  TRY(region_array(&s->searcher->scratch, asked->n, sizeof *scans, &scans));
  for (size_t i = 0; i < asked->n; i++) {
    struct long_search *l = &asked->longs[i];
    if (is_done(l) || !l->boosted)
      continue;
    progress_note();
    TRY(boosted_search_take(l->boosted, &s->searcher->kept, &s->searcher->scratch));
    if (l->boosted->scan)
      scans[n++] = l->boosted->scan;
  }
  boosted_scan_all(scans, n, &s->searcher->pause);
  return ERR_OK;
}

static err_t take(struct search *s, struct long_search *l)
{
  if (l->boosted && l->boosted->scan)
    TRY(boosted_search_take_scan(l->boosted, &s->searcher->scratch));
  if (l->limited && (!l->boosted || l->boosted->is_done))
    TRY(take_limited(s, l));
  return ERR_OK;
}

/* Take what a round has found, and list who needs another one. */
static err_t take_round(struct search *s, struct asked *asked)
{
  TRY(take_boosted(s, asked));
  asked->round.n = 0;
  for (size_t i = 0; i < asked->n; i++) {
    struct long_search *l = &asked->longs[i];
    if (is_done(l))
      continue;
    progress_note();
    TRY(take(s, l));
    if (!is_done(l))
      add_next(&asked->round, l);
  }
  return ERR_OK;
}

/* Of later rounds nothing stays in the scratch: there can be many. */
err_t search_rounds(struct search *s, const struct query *const *queries, size_t n, struct answer *answers)
{
  struct region *scratch = &s->searcher->scratch;
  struct asked asked;

  region_reset(&s->searcher->kept);
  TRY(begin_rounds(s, queries, n, answers, &asked));
  if (asked.round.n > 0)
    TRY(search_groups_search_all(s, &asked.round));
  TRY(take_round(s, &asked));
  struct region_mark mark = region_mark(scratch);
  while (asked.round.n > 0) {
    progress_note();
    TRY(search_groups_search_all(s, &asked.round));
    TRY(take_round(s, &asked));
    region_rewind(scratch, mark);
  }
  for (size_t i = 0; i < asked.n; i++) {
    const struct long_search *l = &asked.longs[i];
    TRY(l->limited ? max_per_write(l->limited, scratch) : boosted_search_write(l->boosted, scratch));
  }
  return ERR_OK;
}
