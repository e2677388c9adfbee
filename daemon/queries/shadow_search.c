/* SPDX-License-Identifier: Apache-2.0 */
/* Two searches, again if an epoch came between them. The first answer is copied, because a searcher keeps one. */
#include "daemon/queries/shadow_search.h"

#include <stdatomic.h>

#include "base/space_name.h"

/* Epochs can follow each other so fast that no two searches fit between them. */
enum { ATTEMPTS = 3 };

/* Memory that is kept for the next query. */
enum { KEPT_BYTES = 1 << 20 };

void shadow_search_fini(struct shadow_search *s)
{
  searcher_close(&s->searcher);
  region_fini(&s->region);
}

static err_t open_searcher(struct shadow_search *s)
{
  return s->searcher ? ERR_OK : searcher_open_aside(s->engine, &s->searcher);
}

static err_t copy_hits(struct region *region, struct answer *answer)
{
  struct hit *hits;

  TRY(region_array(region, answer->n_hits, sizeof *hits, &hits));
  for (size_t i = 0; i < answer->n_hits; i++) {
    hits[i].score = answer->hits[i].score;
    TRY(region_copy(region, answer->hits[i].key, &hits[i].key));
  }
  answer->hits = hits;
  return ERR_OK;
}

static err_t copy_watermark(struct region *region, struct answer *answer)
{
  struct position *watermark;

  TRY(region_array(region, answer->n_watermark, sizeof *watermark, &watermark));
  if (answer->n_watermark)
    memcpy(watermark, answer->watermark, answer->n_watermark * sizeof *watermark);
  answer->watermark = watermark;
  return ERR_OK;
}

/* Search a query that names the space as `name` does. */
static err_t search(struct shadow_search *s, const struct query *query, struct span name, struct answer *out)
{
  struct query asked = *query;
  const struct query *queries[] = { &asked };
  struct answer answer = { .id = query->id };
  struct method method;
  size_t space;

  if (atomic_load(s->is_stopping))
    FAIL(ERR_STOPPING, "the daemon is stopping: the query is not compared");
  asked.space = name;
  asked.n_explain = 0;
  asked.n_attributes = 0;
  asked.mmr.is_left_open = false;
  TRY(engine_check_query(s->engine, &asked, &space, &method));
  TRY(searcher_search(s->searcher, space, &method, queries, 1, &answer));
  if (answer.error)
    FAIL(ERR_QUERY, "%s", answer.error_message);
  TRY(copy_hits(&s->region, &answer));
  TRY(copy_watermark(&s->region, &answer));
  TRY(region_copy(&s->region, answer.space, &answer.space));
  *out = answer;
  return ERR_OK;
}

static err_t search_in_order(struct shadow_search *s, const struct query *query, struct span shadow,
                             bool is_shadow_first, struct shadow_pair *out)
{
  region_trim(&s->region, KEPT_BYTES);
  if (is_shadow_first)
    TRY(search(s, query, shadow, &out->shadow));
  TRY(search(s, query, query->space, &out->current));
  if (!is_shadow_first)
    TRY(search(s, query, shadow, &out->shadow));
  return ERR_OK;
}

err_t shadow_search_both(struct shadow_search *s, const struct query *query, uint32_t generation, bool is_shadow_first,
                         struct shadow_pair *out)
{
  const struct space_name name = { query->space, generation };
  char shadow[SPACE_NAME_MAX + 1];

  if (!space_name_print(&name, shadow))
    FAIL(ERR_SPACE, "with its generation, the name of the space has more than %d bytes", SPACE_NAME_MAX);
  TRY(open_searcher(s));
  for (int i = 0; i < ATTEMPTS; i++) {
    TRY(search_in_order(s, query, span_of_str(shadow), is_shadow_first, out));
    if (out->current.generation == generation)
      FAIL(ERR_SPACE, "%s is the current generation", shadow);
    if (out->current.epoch == out->shadow.epoch)
      break;
  }
  return ERR_OK;
}
