/* SPDX-License-Identifier: Apache-2.0 */
/* Rounds: which queries take part in one, and what becomes of what it has found. */
#include "engine/search_rounds.h"

#include "base/progress.h"
#include "engine/max_per.h"

/* The queries of a batch that have no error, and those of them that have a max_per. */
struct asked {
  struct group round; /* what is searched next */
  struct max_per_search *limited;
  size_t n_limited;
};

static void add_to_round(struct group *round, const struct query *query, const struct admit *admit,
                         struct answer *answer)
{
  round->queries[round->n] = query;
  round->admits[round->n] = admit;
  round->answers[round->n++] = answer;
}

static size_t count_limited(const struct query *const *queries, size_t n)
{
  size_t n_limited = 0;

  for (size_t i = 0; i < n; i++)
    n_limited += queries[i]->max_per.n > 0;
  return n_limited;
}

static err_t begin_rounds(struct search *s, const struct query *const *queries, size_t n, struct answer *answers,
                          struct asked *out)
{
  struct region *region = &s->searcher->scratch;

  *out = (struct asked){ 0 };
  TRY(search_groups_init(region, n, &out->round));
  TRY(region_array(region, count_limited(queries, n), sizeof *out->limited, &out->limited));
  for (size_t i = 0; i < n; i++) {
    const struct admit *admit = &s->admission.admits[i];
    if (answers[i].error)
      continue;
    if (!queries[i]->max_per.n) {
      add_to_round(&out->round, queries[i], admit, &answers[i]);
      continue;
    }
    struct max_per_search *limited = &out->limited[out->n_limited++];
    max_per_begin(s->arena, &s->searcher->engine->attributes, queries[i], admit, &answers[i], limited);
    add_to_round(&out->round, &limited->wider, &limited->admit, &limited->found);
  }
  return ERR_OK;
}

/* Take what a round has found, and list who needs another one. */
static err_t take_round(struct search *s, struct asked *asked)
{
  asked->round.n = 0;
  for (size_t i = 0; i < asked->n_limited; i++) {
    struct max_per_search *limited = &asked->limited[i];
    if (limited->is_done)
      continue;
    TRY(max_per_take(limited, &s->searcher->scratch));
    if (!limited->is_done)
      add_to_round(&asked->round, &limited->wider, &limited->admit, &limited->found);
  }
  return ERR_OK;
}

/* Of later rounds nothing stays but the hits that are kept: there can be many. */
err_t search_rounds(struct search *s, const struct query *const *queries, size_t n, struct answer *answers)
{
  struct region *region = &s->searcher->scratch;
  struct asked asked;

  TRY(begin_rounds(s, queries, n, answers, &asked));
  if (asked.round.n > 0)
    TRY(search_groups_search_all(s, &asked.round));
  TRY(take_round(s, &asked));
  struct region_mark mark = region_mark(region);
  while (asked.round.n > 0) {
    progress_note();
    TRY(search_groups_search_all(s, &asked.round));
    TRY(take_round(s, &asked));
    region_rewind(region, mark);
  }
  for (size_t i = 0; i < asked.n_limited; i++)
    TRY(max_per_write(&asked.limited[i], region));
  return ERR_OK;
}
