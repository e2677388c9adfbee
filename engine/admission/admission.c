/* SPDX-License-Identifier: Apache-2.0 */
/* Filters to words. Excluded keys to slots, or to sets that are asked during the search. */
#include "engine/admission/admission.h"

#include <assert.h>
#include <string.h>

#include "base/size.h"
#include "engine/admission/exclusion.h"
#include "engine/arena/arena_program.h"

/* So few keys are turned into slots about as fast as the search would look items up, and the answer says how many items
 * are admitted. */
enum { LATE_MIN = 256 };

/* A filter of the batch, evaluated, or as a program for a device that evaluates it. */
struct selection {
  struct span key; /* equal for equal filters */
  uint64_t id;     /* as admit.words_id */
  struct filter_words words;
  const struct filter_program *program; /* NULL: there are words */
};

/* The batch while its filters are evaluated. */
struct finding {
  const struct arena *arena;
  const struct arena_space *space;
  struct exclusion exclusion;
  bool checks_late, makes_words;
  struct region *region;
  struct selection *selections;
  size_t n_selections;
  struct admission *out;
};

static size_t space_of(const struct finding *f)
{
  return (size_t)(f->space - f->arena->spaces);
}

static void hold(struct finding *f, struct filter_entry *entry)
{
  f->out->held[f->out->n_held++] = entry;
}

/* Write the words of a new entry, from those of a former version if that is faster. */
static err_t evaluate_entry(const struct finding *f, const struct filter_scope *scope, const struct filter_sight *sight,
                            struct filter_entry *entry)
{
  struct filter_words words = filter_entry_words(entry);
  uint64_t former = filter_entry_former(entry);
  bool patches = former > 0 && filter_words_can_patch(scope, sight, former);

  if (patches)
    TRY(filter_words_patch(scope, sight, former, f->region, &words));
  else
    TRY(filter_words_evaluate(scope, f->region, &words));
  filter_cache_commit(f->out->cache, entry, &words);
  filter_cache_note(f->out->cache, patches);
  return ERR_OK;
}

/* Evaluate a filter that the cache has no room for. */
static err_t evaluate_selection(const struct finding *f, const struct filter_scope *scope, struct selection *out)
{
  out->id = 0;
  filter_cache_note(f->out->cache, false);
  TRY(region_array(f->region, bits_words(f->arena->n_slots), sizeof *out->words.words, &out->words.words));
  return filter_words_evaluate(scope, f->region, &out->words);
}

/* Numbers of spaces are below 2 to the power of this. */
enum { SPACE_NUMBER_BITS = 24 };

/* An id for the words of queries without a filter. The ids of filters are far smaller. */
static uint64_t space_words_id(const struct finding *f)
{
  struct filter_sight sight;

  filter_sight_look(f->arena, space_of(f), NULL, &sight);
  return UINT64_C(1) << 63 | sight.version << SPACE_NUMBER_BITS | f->space->space->number;
}

/* Count the keys that a query lists; one that comes twice counts twice. */
static size_t n_keys_of(const struct query *query)
{
  return query->n_exclude + (query->seen ? query->seen->n : 0);
}

/* Does a query need host words whatever the device can make? Explained items are looked up in them, long lists of
 * excluded keys cleared, and later rounds begin with them. */
static bool needs_words(const struct finding *f, const struct query *query)
{
  return !f->makes_words || query->n_explain > 0 || query_takes_rounds(query) ||
         !exclusion_is_short(&f->exclusion, n_keys_of(query));
}

/* Make the program of a filter that the cache does not have. NULL: host words are better, or there is no program. */
static err_t make_program(const struct finding *f, const struct filter_scope *scope, const struct filter_sight *sight,
                          const struct filter_key *key, const struct filter_program **out)
{
  uint64_t newest;
  bool will_come_again = filter_cache_ask(f->out->cache, key, &newest);
  bool can_patch = newest > 0 && newest < key->version && filter_words_can_patch(scope, sight, newest);

  *out = NULL;
  if (will_come_again || can_patch)
    return ERR_OK;
  return arena_program_make(scope->arena, scope->filter, f->region, out);
}

/* Find the words of a filter in the cache, or evaluate it. */
static err_t select_words(struct finding *f, const struct filter_scope *scope, const struct filter_sight *sight,
                          const struct filter_key *key, struct selection *out)
{
  struct filter_entry *entry;

  TRY(filter_cache_begin(f->out->cache, key, sight->known_since, &entry));
  if (!entry)
    return evaluate_selection(f, scope, out);
  hold(f, entry);
  TRY(evaluate_entry(f, scope, sight, entry));
  out->words = filter_entry_words(entry);
  out->id = filter_entry_id(entry);
  return ERR_OK;
}

static err_t select_slots(struct finding *f, const struct query *query, struct selection *out)
{
  const struct filter_scope scope = { f->arena, space_of(f), query->tree };
  struct filter_sight sight;

  filter_sight_look(f->arena, scope.space, query->tree, &sight);
  const struct filter_key key = { query->tree_key, f->space->space->number, sight.version };
  struct filter_entry *entry = filter_cache_acquire(f->out->cache, &key);
  *out = (struct selection){ .key = query->tree_key };
  if (entry) {
    hold(f, entry);
    out->words = filter_entry_words(entry);
    out->id = filter_entry_id(entry);
    return ERR_OK;
  }
  if (!needs_words(f, query))
    TRY(make_program(f, &scope, &sight, &key, &out->program));
  if (!out->program)
    return select_words(f, &scope, &sight, &key, out);
  filter_cache_note(f->out->cache, false);
  return ERR_OK;
}

/* Find the selection of a query's filter, or make it. */
static err_t find_selection(struct finding *f, const struct query *query, const struct selection **out)
{
  struct selection *new = &f->selections[f->n_selections];

  for (*out = f->selections; *out < new; (*out)++) {
    if (span_equal((*out)->key, query->tree_key) && !((*out)->program && needs_words(f, query)))
      return ERR_OK;
  }
  TRY(select_slots(f, query, new));
  f->n_selections++;
  return ERR_OK;
}

/* Copy all excluded keys of a query to one array. */
static err_t join_keys(const struct query *query, struct region *region, struct span **out)
{
  TRY(region_array(region, n_keys_of(query), sizeof **out, out));
  if (query->n_exclude > 0)
    memcpy(*out, query->exclude, query->n_exclude * sizeof **out);
  if (query->seen && query->seen->n > 0)
    memcpy(*out + query->n_exclude, query->seen->keys, query->seen->n * sizeof **out);
  return ERR_OK;
}

/* Can the excluded keys be looked up late, if so many are distinct? At least K other items are admitted then, so that
 * the receipt does not depend on how many there are. Later rounds search among what is left. */
static bool can_be_late(const struct finding *f, const struct query *query, const struct admit *admit)
{
  size_t n = n_keys_of(query);

  return f->checks_late && n > LATE_MIN && admit->n_admitted > n + query->k && !query_takes_rounds(query);
}

static err_t make_late(const struct finding *f, const struct query *query, struct late_keys **out)
{
  struct late_keys *late;
  struct key_set *listed;

  assert(!query->seen || query->seen->hash == f->arena->keys.hash);
  TRY(region_array(f->region, 1, sizeof *late, &late));
  late->keys = &f->arena->keys;
  if (query->seen)
    late->sets[late->n_sets++] = query->seen;
  if (query->n_exclude > 0) {
    TRY(region_array(f->region, 1, sizeof *listed, &listed));
    TRY(key_set_init(late->keys->hash, query->exclude, query->n_exclude, f->region, listed));
    late->sets[late->n_sets++] = listed;
  }
  *out = late;
  return ERR_OK;
}

/* Find out whether more than LATE_MIN distinct keys are excluded. Only sets that are small by themselves are joined to
 * see what they have in common. */
static err_t find_whether_many(const struct finding *f, const struct query *query, const struct late_keys *late,
                               bool *out)
{
  struct span *keys;
  struct key_set both;
  size_t n = 0, most = 0;

  for (size_t i = 0; i < late->n_sets; i++) {
    n += late->sets[i]->n_distinct;
    most = size_max(most, late->sets[i]->n_distinct);
  }
  if (n > LATE_MIN && most <= LATE_MIN) {
    TRY(join_keys(query, f->region, &keys));
    TRY(key_set_init(late->keys->hash, keys, n_keys_of(query), f->region, &both));
    n = both.n_distinct;
  }
  *out = n > LATE_MIN;
  return ERR_OK;
}

static err_t exclude(const struct finding *f, const struct query *query, struct admit *out)
{
  struct late_keys *late = NULL;
  struct span *keys;
  bool has_many = false;

  if (can_be_late(f, query, out)) {
    TRY(make_late(f, query, &late));
    TRY(find_whether_many(f, query, late, &has_many));
  }
  if (has_many) {
    out->late = late;
    return ERR_OK;
  }
  TRY(join_keys(query, f->region, &keys));
  return exclusion_apply(&f->exclusion, keys, n_keys_of(query), f->region, out);
}

/* The device will make the words. Excluded slots are a list. */
static err_t admit_by_program(const struct finding *f, const struct query *query, const struct filter_program *program,
                              struct admit *out)
{
  uint64_t n_alive = arena_space_n_alive(f->space);
  const struct attribute_selection *filter;
  struct span *keys;

  *out = (struct admit){ .program = program, .n_admitted = program->most < n_alive ? program->most : n_alive };
  if (n_keys_of(query) == 0)
    return ERR_OK;
  TRY(join_keys(query, f->region, &keys));
  TRY(attribute_selection_bind(f->arena->attributes, query->tree, f->region, &filter));
  return exclusion_list(&f->exclusion, keys, n_keys_of(query), arena_space_words(f->space), filter, f->region, out);
}

static err_t find(struct finding *f, const struct query *query, struct admit *out)
{
  const struct selection *selection = NULL;

  if (query->tree)
    TRY(find_selection(f, query, &selection));
  if (selection && selection->program)
    return admit_by_program(f, query, selection->program, out);
  out->words = selection ? selection->words.words : arena_space_words(f->space);
  out->words_id = selection ? selection->id : space_words_id(f);
  out->n_admitted = selection ? selection->words.n : arena_space_n_alive(f->space);
  if (n_keys_of(query) > 0)
    TRY(exclude(f, query, out));
  out->admits_parts = !out->late && out->n_admitted == f->space->n_items;
  out->admits_all = !out->late && out->n_admitted == f->arena->n_slots;
  return ERR_OK;
}

static struct finding finding_of(const struct admission_target *target, struct region *region, struct admission *out)
{
  const struct arena *arena = target->arena;

  return (struct finding){ .arena = arena,
                           .space = &arena->spaces[target->space],
                           .exclusion = { &arena->keys, bits_words(arena->n_slots) },
                           .checks_late = target->checks_late,
                           .makes_words = target->makes_words,
                           .region = region,
                           .out = out };
}

/* Count the filters that queries may have: their own, and those of their boosts. */
static size_t count_filters(const struct query *const *queries, size_t n)
{
  size_t n_filters = n;

  for (size_t i = 0; i < n; i++)
    n_filters += queries[i]->n_boosts;
  return n_filters;
}

err_t admission_find(const struct admission_target *target, const struct query *const *queries, size_t n,
                     struct region *region, struct admission *out)
{
  struct finding f = finding_of(target, region, out);

  out->cache = target->cache;
  TRY(region_array(region, count_filters(queries, n), sizeof *out->held, &out->held));
  TRY(region_array(region, n, sizeof *out->admits, &out->admits));
  TRY(region_array(region, n, sizeof *f.selections, &f.selections));
  for (size_t i = 0; i < n; i++)
    TRY(find(&f, queries[i], &out->admits[i]));
  return ERR_OK;
}

err_t admission_find_words(const struct admission_target *target, const struct filter_node *tree, struct span key,
                           struct region *region, struct admission *out, const uint64_t **words)
{
  struct finding f = finding_of(target, region, out);
  const struct query query = { .tree = tree, .tree_key = key };
  struct selection selection;

  f.makes_words = false; /* these are for the processor */
  TRY(select_slots(&f, &query, &selection));
  *words = selection.words.words;
  return ERR_OK;
}

void admission_release(struct admission *a)
{
  while (a->n_held > 0)
    filter_cache_release(a->cache, a->held[--a->n_held]);
}
