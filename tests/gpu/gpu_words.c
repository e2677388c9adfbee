/* SPDX-License-Identifier: Apache-2.0 */
/* Words of filters that the device makes are those of engine/admission/filter_words.h, to the bit: random filters of
 * every operator and type, in both arenas, while items come, change, go and expire, the catalogue grows and shrinks,
 * and is replaced. */
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "engine/admission/filter_words.h"
#include "engine/arena/arena_program.h"
#include "engine/cuda/device_columns.h"
#include "engine/cuda/device_programs.h"
#include "engine/engine_state.h"
#include "tests/gpu/check.h"
#include "tests/support/dice.h"
#include "tests/support/temp_dir.h"
#include "tests/support/vector_file.h"

enum { ITEMS = 3000, WORDS = (ITEMS + 63) / 64, BATCH_MAX = 400, FILTER_BYTES = 1 << 14, TEXTS = 300, SET_MAX = 3 };

enum { FLAG, COLOUR, NAME, TAGS, COUNT, PRICE, ENDS, BEGINS, N_ATTRIBUTES };

static const struct attribute attributes[N_ATTRIBUTES] = {
  [FLAG] = { { (const uint8_t *)"flag", 4 }, ATTRIBUTE_BOOL },
  [COLOUR] = { { (const uint8_t *)"colour", 6 }, ATTRIBUTE_KEYWORD },
  [NAME] = { { (const uint8_t *)"name", 4 }, ATTRIBUTE_KEYWORD },
  [TAGS] = { { (const uint8_t *)"tags", 4 }, ATTRIBUTE_KEYWORDS },
  [COUNT] = { { (const uint8_t *)"count", 5 }, ATTRIBUTE_INTEGER },
  [PRICE] = { { (const uint8_t *)"price", 5 }, ATTRIBUTE_NUMBER },
  [ENDS] = { { (const uint8_t *)"ends", 4 }, ATTRIBUTE_TIME },
  [BEGINS] = { { (const uint8_t *)"begins", 6 }, ATTRIBUTE_TIME },
};

struct world {
  struct dice dice;
  struct temp_dir dir;
  char path[4096];
  struct engine *engine;
  struct device_worker *worker;
  int64_t now_ms;
  size_t n_keys; /* that may be in the catalogue */
  char texts[TEXTS][8];
  uint64_t *found; /* [DEVICE_WORDS_MAX][WORDS] pinned */
  struct region region;
  size_t n_programs, n_without;
};

static int64_t tell_time(void *context)
{
  return ((const struct world *)context)->now_ms;
}

static void open_engine(struct world *w, struct engine_lifetimes lifetimes)
{
  struct engine_space space = { .name = "s", .model_path = w->path };
  struct engine_config config = { .spaces = &space,
                                  .n_spaces = 1,
                                  .max_items = ITEMS,
                                  .max_k = 10,
                                  .max_batch = 1,
                                  .isa = isa_detect(),
                                  .backend = ENGINE_CUDA,
                                  .n_workers = 1,
                                  .attributes = { attributes, N_ATTRIBUTES },
                                  .lifetimes = lifetimes };

  CHECK_OK(engine_open(&config, &w->engine));
  CHECK_OK(device_worker_open(ITEMS, &w->worker));
  CHECK_OK(device_alloc_host((size_t)DEVICE_WORDS_MAX * WORDS, sizeof *w->found, &w->found));
}

static struct world *open_world(uint64_t seed, const char *begins, const char *ends)
{
  struct world *w = calloc(1, sizeof *w);

  w->dice.state = seed;
  w->now_ms = 1790000000000;
  w->n_keys = ITEMS;
  for (size_t i = 0; i < TEXTS; i++)
    sprintf(w->texts[i], "t%zu", i);
  temp_dir_init(&w->dir);
  snprintf(w->path, sizeof w->path, "%s/dot.safetensors", w->dir.path);
  vector_file_write_plain(w->path, "dot", 1);
  open_engine(w, (struct engine_lifetimes){ .not_before = begins, .expires = ends, .clock = { tell_time, w } });
  return w;
}

static void close_world(struct world *w)
{
  device_free_host(&w->found);
  device_worker_close(&w->worker);
  engine_close(&w->engine);
  temp_dir_fini(&w->dir);
  region_fini(&w->region);
  free(w);
}

/* Changes -------------------- */

struct made {
  char key[24];
  struct part part;
  struct attribute_value values[N_ATTRIBUTES];
  struct value elements[SET_MAX];
};

/* Few texts are frequent and many are rare. */
static struct span draw_text(struct world *w)
{
  return span_of_str(w->texts[dice_below(&w->dice, dice_below(&w->dice, 2) ? 4 : TEXTS)]);
}

static int64_t draw_integer(struct dice *d)
{
  static const int64_t special[] = { INT64_MIN, INT64_MAX, 0, -1 };

  return dice_below(d, 10) ? (int64_t)dice_below(d, 40) - 20 : special[dice_below(d, 4)];
}

static double draw_number(struct dice *d)
{
  static const double special[] = { 0.0, -0.0, 0x1p-1074, -0x1p-1074, 0x1.fffffffffffffp1023, 1.5 };

  return dice_below(d, 6) ? (double)dice_float(d, 1.0f) * 20 : special[dice_below(d, 6)];
}

static int64_t draw_time(struct world *w)
{
  return w->now_ms - 50 + (int64_t)dice_below(&w->dice, 100);
}

static struct value draw_value(struct world *w, size_t attribute, struct value *elements)
{
  size_t n = dice_below(&w->dice, SET_MAX + 1);

  switch (attributes[attribute].type) {
  case ATTRIBUTE_BOOL:
    return (struct value){ VALUE_BOOL, .is_true = dice_below(&w->dice, 3) == 0 };
  case ATTRIBUTE_KEYWORD:
    return (struct value){ VALUE_TEXT, .text = draw_text(w) };
  case ATTRIBUTE_KEYWORDS:
    for (size_t i = 0; i < n; i++)
      elements[i] = (struct value){ VALUE_TEXT, .text = draw_text(w) };
    return (struct value){ VALUE_LIST, .list = { elements, n } };
  case ATTRIBUTE_INTEGER:
    return (struct value){ VALUE_INTEGER, .integer = draw_integer(&w->dice) };
  case ATTRIBUTE_NUMBER:
    return (struct value){ VALUE_NUMBER, .number = draw_number(&w->dice) };
  default:
    return (struct value){ VALUE_INTEGER, .integer = draw_time(w) };
  }
}

static struct item_change draw_change(struct world *w, size_t key, struct made *made, size_t percent_deleted)
{
  static const float one = 1.0f;
  struct item_change change = { .parts = &made->part, .attributes = made->values };

  change.key = span_of(made->key, (size_t)sprintf(made->key, "%zu", key));
  if (dice_below(&w->dice, 100) < percent_deleted) {
    change.is_delete = true;
    return change;
  }
  made->part = (struct part){ .space = span_of_str("s"), .vector = { &one, 1 } };
  change.is_whole = dice_below(&w->dice, 4) == 0;
  change.n_parts = dice_below(&w->dice, 3) > 0;
  for (size_t i = 0; i < N_ATTRIBUTES; i++) {
    if (dice_below(&w->dice, 3) == 0)
      continue;
    struct attribute_value *value = &made->values[change.n_attributes++];
    *value = (struct attribute_value){ attributes[i].name, { .kind = VALUE_NULL } };
    if (dice_below(&w->dice, 5))
      value->value = draw_value(w, i, made->elements);
  }
  return change;
}

static void churn(struct world *w, size_t n, size_t percent_deleted)
{
  struct item_change *changes = calloc(n, sizeof *changes);
  struct made *made = calloc(n, sizeof *made);

  for (size_t i = 0; i < n; i++)
    changes[i] = draw_change(w, dice_below(&w->dice, w->n_keys), &made[i], percent_deleted);
  CHECK_OK(engine_apply(w->engine, changes, n, NULL, 0));
  free(changes);
  free(made);
}

static void pass_time(struct world *w)
{
  w->now_ms += (int64_t)dice_below(&w->dice, 20);
  CHECK_OK(engine_pass_time(w->engine));
}

/* Filters -------------------- */

struct text {
  char *at;
  size_t n;
};

static void say(struct text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void say(struct text *t, const char *format, ...)
{
  va_list list;

  va_start(list, format);
  t->n += (size_t)vsnprintf(t->at + t->n, FILTER_BYTES - t->n, format, list);
  va_end(list);
}

static void say_value(struct world *w, struct text *t, size_t attribute)
{
  switch (attributes[attribute].type) {
  case ATTRIBUTE_BOOL:
    say(t, "%s", dice_below(&w->dice, 2) ? "true" : "false");
    break;
  case ATTRIBUTE_KEYWORD:
  case ATTRIBUTE_KEYWORDS:
    say(t, "'%s'", dice_below(&w->dice, 10) ? (const char *)draw_text(w).p : "the text that no item has");
    break;
  case ATTRIBUTE_INTEGER:
    say(t, "%" PRId64, draw_integer(&w->dice));
    break;
  case ATTRIBUTE_NUMBER:
    say(t, "%.17e", draw_number(&w->dice));
    break;
  default:
    say(t, "%" PRId64, draw_time(w));
  }
}

static void say_list(struct world *w, struct text *t, size_t attribute)
{
  size_t n = 1 + dice_below(&w->dice, attribute == FLAG ? 2 : dice_below(&w->dice, 2) ? 4 : 30);

  say(t, "(");
  for (size_t i = 0; i < n; i++) {
    say(t, "%s", i ? ", " : "");
    say_value(w, t, attribute);
  }
  say(t, ")");
}

static void say_comparison(struct world *w, struct text *t, size_t attribute)
{
  static const char *const operators[] = { "=", "!=", "<", "<=", ">", ">=" };
  enum attribute_type type = attributes[attribute].type;
  bool has_order = type == ATTRIBUTE_INTEGER || type == ATTRIBUTE_NUMBER || type == ATTRIBUTE_TIME;
  size_t which = dice_below(&w->dice, has_order ? 4 : 3);

  if (type == ATTRIBUTE_KEYWORDS) {
    say(t, " has ");
    say_list(w, t, attribute);
  } else if (which == 0) {
    say(t, " in ");
    say_list(w, t, attribute);
  } else if (which < 3) {
    say(t, " %s ", operators[dice_below(&w->dice, has_order ? 6 : 2)]);
    say_value(w, t, attribute);
  } else {
    say(t, " between ");
    say_value(w, t, attribute);
    say(t, " and ");
    say_value(w, t, attribute);
  }
}

static void say_leaf(struct world *w, struct text *t)
{
  size_t attribute = dice_below(&w->dice, N_ATTRIBUTES);

  if (attribute == TAGS && dice_below(&w->dice, 4))
    attribute = NAME; /* sets leave a filter without a program */
  const struct span *name = &attributes[attribute].name;
  if (dice_below(&w->dice, 8) == 0) {
    say(t, "has(%.*s)", (int)name->n, (const char *)name->p);
    return;
  }
  say(t, "%.*s", (int)name->n, (const char *)name->p);
  if (attribute != FLAG || dice_below(&w->dice, 2))
    say_comparison(w, t, attribute);
}

static void say_filter(struct world *w, struct text *t, size_t depth)
{
  if (depth == 0 || dice_below(&w->dice, 3) == 0) {
    say_leaf(w, t);
    return;
  }
  size_t n = 1 + dice_below(&w->dice, 3);
  const char *joint = dice_below(&w->dice, 2) ? " and " : " or ";
  say(t, dice_below(&w->dice, 4) ? "(" : "not (");
  for (size_t i = 0; i < n; i++) {
    say(t, "%s", i ? joint : "");
    say_filter(w, t, depth - 1);
  }
  say(t, ")");
}

static const struct filter_node *draw_filter(struct world *w, char *room)
{
  struct text text = { room, 0 };
  struct query query = { 0 };

  say_filter(w, &text, 3);
  query.filter = span_of(room, text.n);
  CHECK_OK(engine_check_filter(w->engine, &query, &w->region));
  return query.tree;
}

/* Checks -------------------- */

/* Filters that are made together. */
struct group {
  const struct filter_node *filters[DEVICE_WORDS_MAX];
  const struct filter_program *programs[DEVICE_WORDS_MAX];
  char texts[DEVICE_WORDS_MAX][FILTER_BYTES];
  size_t n;
};

static void draw_group(struct world *w, const struct arena *arena, size_t n, struct group *out)
{
  region_reset(&w->region);
  out->n = 0;
  for (size_t i = 0; i < n; i++) {
    out->filters[out->n] = draw_filter(w, out->texts[out->n]);
    CHECK_OK(arena_program_make(arena, out->filters[out->n], &w->region, &out->programs[out->n]));
    w->n_without += !out->programs[out->n];
    out->n += out->programs[out->n] != NULL;
  }
  w->n_programs += out->n;
}

static void check_words(struct world *w, const struct arena *arena, const struct group *group, size_t i, uint64_t count)
{
  uint64_t wanted[WORDS];
  struct filter_words words = { .words = wanted };

  CHECK_OK(filter_words_evaluate(&(struct filter_scope){ arena, 0, group->filters[i] }, &w->region, &words));
  CHECK(count == words.n, "%s: the device counts %zu, not %zu", group->texts[i], (size_t)count, (size_t)words.n);
  CHECK(words.n <= group->programs[i]->most, "%s: %zu admitted, at most %zu", group->texts[i], (size_t)words.n,
        (size_t)group->programs[i]->most);
  for (size_t k = 0; k < words.n_words; k++)
    CHECK(w->found[i * WORDS + k] == wanted[k], "%s: word %zu of %zu is %016" PRIx64 ", not %016" PRIx64,
          group->texts[i], k, words.n_words, w->found[i * WORDS + k], wanted[k]);
}

static void check_arena(struct world *w, const struct arena *arena, size_t n)
{
  static struct group group;
  struct device_programs programs;
  const uint64_t *words[DEVICE_WORDS_MAX];
  const struct device_columns *columns = device_columns_of(arena->spaces[0].on[0]);
  const struct device_programs_source source = { arena->copies[0], columns->rows.present, arena->n_slots };

  draw_group(w, arena, n, &group);
  device_worker_reset(w->worker);
  CHECK_OK(device_programs_begin(w->worker, &source, &programs));
  for (size_t i = 0; i < group.n; i++)
    CHECK_OK(device_programs_add(&programs, group.programs[i], &words[i]));
  CHECK_OK(device_worker_send(w->worker));
  CHECK_OK(device_programs_run(&programs));
  for (size_t i = 0; i < group.n; i++)
    CHECK_OK(device_copy_out(w->worker->stream, w->found + i * WORDS, words[i],
                             bits_words(arena->n_slots) * sizeof *w->found));
  CHECK_OK(device_worker_receive(w->worker));
  for (size_t i = 0; i < group.n; i++)
    check_words(w, arena, &group, i, device_programs_count(&programs, group.programs[i]));
}

static void check_arenas(struct world *w, size_t n)
{
  for (size_t i = 0; i < 2; i++)
    check_arena(w, &w->engine->pair->arenas[i], n);
}

/* Worlds -------------------- */

static void check_changes(struct world *w)
{
  check_arenas(w, 4); /* an empty catalogue */
  churn(w, 2000, 0);
  for (size_t round = 0; round < check_size(60, 20); round++) {
    churn(w, 1 + dice_below(&w->dice, dice_below(&w->dice, 4) ? 30 : BATCH_MAX), round % 7 == 6 ? 90 : 10);
    if (dice_below(&w->dice, 3) == 0)
      pass_time(w);
    check_arenas(w, 1 + dice_below(&w->dice, check_size(DEVICE_WORDS_MAX, 12)));
  }
  CHECK(w->n_programs > w->n_without, "only %zu programs, and %zu filters without", w->n_programs, w->n_without);
}

static void check_sizes(struct world *w)
{
  w->n_keys = 150;
  for (size_t round = 0; round < check_size(40, 16); round++) {
    churn(w, dice_below(&w->dice, 120), round / 4 % 2 ? 95 : 5);
    check_arenas(w, 4);
  }
}

static err_code_t feed(void *context, struct engine_loading *loading)
{
  struct world *w = context;
  static struct item_change changes[BATCH_MAX];
  static struct made made[BATCH_MAX];

  for (size_t i = 0; i < BATCH_MAX; i++)
    changes[i] = draw_change(w, i, &made[i], 0);
  return engine_loading_put(loading, &w->region, 0, changes, BATCH_MAX);
}

static void check_replaced(struct world *w)
{
  w->n_keys = ITEMS;
  churn(w, 2000, 0);
  CHECK_OK(engine_replace(w->engine, feed, w, 2, NULL, 0));
  check_arenas(w, 16);
  churn(w, 200, 10);
  check_arenas(w, 16);
}

/* More changes than a flush copies at once. */
static void check_many(struct world *w)
{
  for (size_t i = 0; i < 3; i++)
    churn(w, 12000, 5);
  check_arenas(w, 8);
}

int main(void)
{
  static const char *const lives[][2] = { { NULL, NULL }, { NULL, "ends" }, { "begins", NULL }, { "begins", "ends" } };
  uint64_t seed = dice_seed();

  check_begin("gpu_words");
  for (size_t i = 0; i < 4; i++) {
    struct world *w = open_world(seed + i, lives[i][0], lives[i][1]);
    check_changes(w);
    check_sizes(w);
    check_replaced(w);
    if (i == 0)
      check_many(w);
    close_world(w);
  }
  return check_end("gpu_words");
}
