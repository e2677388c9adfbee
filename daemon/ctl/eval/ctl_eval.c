/* SPDX-License-Identifier: Apache-2.0 */
/* sluicectl eval: search files with the engine, without daemon or Kafka, and compare methods with exact. */
#include <jansson.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/method.h"
#include "base/size.h"
#include "daemon/config/config.h"
#include "daemon/ctl/ctl_command.h"
#include "daemon/ctl/ctl_output.h"
#include "daemon/ctl/eval/ctl_eval_attributes.h"
#include "daemon/ctl/eval/ctl_eval_options.h"
#include "daemon/ctl/eval/ctl_eval_output.h"
#include "daemon/ctl/eval/ctl_eval_report.h"
#include "daemon/ctl/eval/safetensors_write.h"
#include "daemon/ctl/text/ctl_format.h"
#include "daemon/ctl/text/ctl_progress.h"
#include "daemon/ctl/text/ctl_say.h"
#include "engine/similarity/similarity.h"

/* A method to run. */
struct ctl_eval_method {
  char text[METHOD_TEXT_MAX]; /* as given on the command line */
  char ran[METHOD_TEXT_MAX];  /* the name it runs under: exact may stand for brute_force */
  struct method method;
};

struct eval {
  struct ctl_eval_options options;
  struct ctl_eval_items items;
  struct ctl_eval_queries queries;
  struct config *config; /* NULL: not needed */
  struct attributes attributes;
  struct region region; /* holds the filter */
  struct engine *engine;
  struct engine_space_info space;
  struct ctl_eval_method *methods; /* [n_methods] [0] is exact, then those given */
  struct ctl_eval_row *rows;       /* [n_methods] */
  size_t n_methods;
  size_t reference;              /* index of the first given method that runs as exact does; 0 if none */
  struct ctl_eval_answers exact; /* answers of the reference */
  struct ctl_progress progress;
};

static void ctl_eval_fini(struct eval *e)
{
  ctl_progress_hide(&e->progress);
  ctl_eval_answers_fini(&e->exact);
  engine_close(&e->engine);
  ctl_eval_items_fini(&e->items);
  ctl_eval_queries_fini(&e->queries);
  config_close(&e->config);
  region_fini(&e->region);
  mem_free(&e->methods);
  mem_free(&e->rows);
  ctl_eval_options_fini(&e->options);
}

static void on_progress(void *context, size_t n_done)
{
  ctl_progress_tick(context, n_done, n_done);
}

/* Facts from the model's metadata that decide how the files are read. */
struct model_needs {
  bool codes;    /* items have codes in place of vectors */
  bool user_ids; /* the model has user tables */
  bool dim;      /* the model does not say the dimension of a vector */
};

static err_t read_needs(const char *model_path, struct model_needs *out)
{
  AUTO(safetensors_close) struct safetensors *file = NULL;
  const struct similarity *similarity;

  TRY(safetensors_map(model_path, &file));
  TRY(similarity_of(file, &similarity));
  const char *user_hash = safetensors_text(file, "mol.uid_hash");
  json_t *tables = user_hash ? json_loads(user_hash, 0, NULL) : NULL;
  *out = (struct model_needs){
    .codes = similarity->kind == SIMILARITY_RECJPQ,
    .user_ids = json_array_size(tables) > 0,
    .dim = (similarity->kind == SIMILARITY_DOT || similarity->kind == SIMILARITY_COSINE) &&
           !safetensors_text(file, "sluice.dim"),
  };
  json_decref(tables);
  return ERR_OK;
}

/* Return the batch size: not more than there are queries. */
static size_t batch_of(const struct eval *e)
{
  return e->options.batch < e->queries.n ? e->options.batch : e->queries.n;
}

/* Return how many hits a query can have. */
static size_t width_of(const struct eval *e)
{
  return size_min(e->options.k, e->items.n);
}

/* All searches are of one moment, so that methods are compared over the same items. */
static int64_t unix_ms_of_searches(void *context)
{
  const struct ctl_eval_options *o = context;

  return o->at_unix_ms;
}

/* Open an engine with one space, large enough for all items. */
static err_t open_engine(struct eval *e, const struct model_needs *needs)
{
  const struct ctl_eval_options *o = &e->options;
  const struct engine_space space = {
    .name = ctl_eval_space,
    .model_path = o->model_path,
    .dim = needs->dim ? e->items.width : 0,
  };
  const struct engine_config config = {
    .spaces = &space,
    .n_spaces = 1,
    .max_items = e->items.n,
    .max_k = o->mmr.diversity > 0 ? size_max(width_of(e), QUERY_MMR_MAX) : width_of(e),
    .max_batch = batch_of(e),
    .n_workers = o->n_threads,
    .isa = o->isa,
    .backend = o->backend,
    .attributes = e->attributes,
    .lifetimes = { o->not_before, o->expires, { unix_ms_of_searches, &e->options } },
  };
  char reason[384];

  const struct engine_threads threads = { o->threads_per_search, o->n_threads * o->threads_per_search, false };

  err_code_t result = engine_open(&config, &e->engine);
  if (result == ERR_OK)
    return engine_share_searches(e->engine, &threads);
  if (result != ERR_CONFIG)
    return result;
  snprintf(reason, sizeof reason, "%s", err_message());
  FAIL(result, "%s: its %s items cannot be held on this machine: use fewer items or more memory (%s)", o->items_path,
       ctl_format_count(e->items.n).s, reason);
}

static err_t verify_lifetime(const struct eval *e, const char *option, const char *name)
{
  size_t i = name ? attributes_find(&e->attributes, span_of_str(name), 0) : 0;

  if (!name || (i != ATTRIBUTE_NONE && e->attributes.v[i].type == ATTRIBUTE_TIME))
    return ERR_OK;
  FAIL(ERR_USAGE, "%s: %s is not an attribute of type time: give it as --attribute %s:time", option, name, name);
}

static err_t verify_lifetimes(const struct eval *e)
{
  TRY(verify_lifetime(e, "--not-before", e->options.not_before));
  return verify_lifetime(e, "--expires", e->options.expires);
}

/* Find the types of the attributes: those of the command line, or else of the configuration. */
static err_t find_attributes(struct eval *e, const char *config_path)
{
  const struct ctl_eval_options *o = &e->options;
  char reason[384];

  e->attributes = (struct attributes){ o->attributes, o->n_attributes };
  if (!o->attributes_path || o->n_attributes > 0)
    return verify_lifetimes(e);
  err_code_t result = config_open(config_path, &e->config);
  if (result != ERR_OK) {
    snprintf(reason, sizeof reason, "%s", err_message());
    FAIL(result, "the attributes need types: give --attribute NAME:TYPE for each, or --config FILE before eval (%s)",
         reason);
  }
  e->attributes = e->config->attributes;
  if (e->attributes.n == 0)
    FAIL(ERR_CONFIG, "%s has no attributes: name them there, or give --attribute NAME:TYPE for each", config_path);
  return verify_lifetimes(e);
}

/* Give all queries what the command line limits and boosts. */
static err_t set_limits(struct eval *e)
{
  struct ctl_eval_options *o = &e->options;
  struct query *common = &e->queries.common;

  common->max_per = o->max_per;
  common->mmr = o->mmr;
  common->has_min_score = o->min_score.is_given;
  common->min_score = (float)o->min_score.score;
  common->boosts = o->boosts.v;
  common->n_boosts = o->boosts.n;
  common->has_now = o->boosts.n > 0;
  common->now_unix_ms = o->boosts.now_unix_ms;
  if (o->filter)
    return ctl_eval_queries_set_filter(&e->queries, e->engine, o->filter, o->parameters, &e->region);
  return engine_check_filter(e->engine, common, &e->region); /* of boosts */
}

static err_t verify_output(const struct eval *e)
{
  const struct ctl_eval_options *o = &e->options;
  const struct ctl_input inputs[] = {
    { o->model_path, "model" },
    { o->items_path, "items" },
    { o->queries_path, "queries" },
    { o->attributes_path, "attributes" },
    { e->config ? e->config->path : NULL, "configuration" },
  };

  if (!o->output_path)
    return ERR_OK;
  TRY(ctl_output_verify("--output", o->output_path, inputs, sizeof inputs / sizeof *inputs));
  return safetensors_verify_writable(o->output_path);
}

static err_t open_all(struct eval *e)
{
  const struct kernels *kernels;
  struct model_needs needs;

  TRY(kernels_get(e->options.isa, &kernels));
  TRY(verify_output(e));
  TRY(read_needs(e->options.model_path, &needs));
  TRY(ctl_eval_items_open(e->options.items_path, needs.codes, &e->items));
  TRY(ctl_eval_queries_open(e->options.queries_path, needs.user_ids, e->options.has_targets, &e->queries));
  if (e->options.has_targets)
    TRY(ctl_eval_queries_verify_targets(&e->queries, &e->items));
  if (needs.user_ids && !e->queries.has_user_ids)
    ctl_say("%s has no tensor \"user_ids\", although the model has user tables: the queries have no user",
            e->options.queries_path);
  TRY(open_engine(e, &needs));
  return set_limits(e);
}

static err_t add_method(struct eval *e, const char *text)
{
  struct ctl_eval_method *method = &e->methods[e->n_methods];

  TRY(ctl_eval_queries_verify(&e->queries, e->engine, (uint32_t)width_of(e), text, &method->method));
  snprintf(method->text, sizeof method->text, "%s", text);
  method_print(&method->method, method->ran);
  e->n_methods++;
  return ERR_OK;
}

/* Return the index of the first given method that runs as exact does, under whatever name; 0 if none. */
static size_t find_reference(const struct eval *e)
{
  for (size_t i = 1; i < e->n_methods; i++) {
    if (strcmp(e->methods[i].ran, e->methods[0].ran) == 0)
      return i;
  }
  return 0;
}

static err_t add_methods(struct eval *e)
{
  const struct ctl_eval_options *o = &e->options;

  TRY(mem_array(o->n_methods + 1, sizeof *e->methods, &e->methods));
  TRY(mem_array(o->n_methods + 1, sizeof *e->rows, &e->rows));
  TRY(add_method(e, "exact"));
  for (size_t i = 0; i < o->n_methods; i++)
    TRY(add_method(e, o->methods[i]));
  e->reference = find_reference(e);
  if (e->reference == 0)
    ctl_say("exact is searched too: the others are compared with it");
  return ERR_OK;
}

static err_t load_attributes(struct eval *e)
{
  const struct ctl_eval_watch watch = { on_progress, &e->progress };

  if (!e->options.attributes_path)
    return ERR_OK;
  ctl_progress_begin(&e->progress, "attributes", e->items.n);
  TRY(ctl_eval_attributes_apply(e->options.attributes_path, &e->items, e->engine, &watch));
  ctl_progress_hide(&e->progress);
  return ERR_OK;
}

static err_t load_items(struct eval *e, int64_t *out_ns)
{
  const struct ctl_eval_watch watch = { on_progress, &e->progress };
  int64_t begin_ns = clock_now_ns();

  ctl_progress_begin(&e->progress, "loading", e->items.n);
  TRY(ctl_eval_items_apply(&e->items, e->engine, &watch));
  ctl_progress_hide(&e->progress);
  *out_ns = clock_now_ns() - begin_ns;
  return ERR_OK;
}

/* Search with one method and compare its answers with those of the reference, which must come first. With --output
 * there is only one given method: write its answers. */
static err_t search(struct eval *e, size_t i)
{
  AUTO(ctl_eval_answers_fini) struct ctl_eval_answers answers = { 0 };
  const struct ctl_eval_options *o = &e->options;
  const struct ctl_eval_method *method = &e->methods[i];
  const struct ctl_eval_watch watch = { on_progress, &e->progress };
  const struct ctl_eval_search what = {
    .engine = e->engine,
    .queries = &e->queries,
    .k = o->k,
    .width = width_of(e),
    .batch = batch_of(e),
    .n_threads = o->n_threads,
  };

  ctl_progress_begin(&e->progress, method->text, e->queries.n);
  e->progress.unit = "queries";
  TRY(ctl_eval_run(&what, method->text, &method->method, &watch, &answers));
  ctl_progress_hide(&e->progress);
  TRY(ctl_eval_compare(&answers, i == e->reference ? &answers : &e->exact,
                       o->has_targets ? &e->queries.target_ids : NULL, &e->rows[i]));
  e->rows[i].method = method->text;
  e->rows[i].ran = method->ran;
  if (o->output_path && i == e->n_methods - 1)
    TRY(ctl_eval_output_write(o->output_path, o->model_path, method->ran, &e->queries.common, &answers));
  if (i == e->reference) {
    e->exact = answers;
    answers = (struct ctl_eval_answers){ 0 };
  }
  return ERR_OK;
}

/* Return the first row to print: exact is printed even if it was not given. */
static size_t first_row(const struct eval *e)
{
  return e->reference == 0 ? 0 : 1;
}

static void print_filter(const struct eval *e)
{
  const struct ctl_eval_row *row = &e->rows[first_row(e)];

  printf("filter   %s", e->options.filter);
  if (row->has_admitted)
    printf(": %s of %s items admitted", ctl_format_count(row->admitted).s, ctl_format_count(e->items.n).s);
  putchar('\n');
}

/* As they were given, so that the run can be repeated. */
static void print_boosts(const struct ctl_boosts *boosts)
{
  for (size_t i = 0; i < boosts->n; i++)
    printf("%s%s\n", i ? "         " : "boosts   ", boosts->texts[i]);
  if (boosts->n > 0)
    printf("now      %s: ages in boosts are counted to it\n", ctl_format_time(boosts->now_unix_ms).s);
}

static void print_mmr(const struct ctl_eval_options *o)
{
  const struct query query = { .k = (uint32_t)o->k, .mmr = o->mmr };

  printf("chosen   among the best %s, with diversity %.9g\n",
         ctl_format_count(query_mmr_candidates(&query, QUERY_MMR_MAX)).s, o->mmr.diversity);
}

static void print_summary(const struct eval *e, int64_t loaded_ns)
{
  const struct ctl_eval_options *o = &e->options;

  printf("model    %s: %s, %s kernels%s\n", o->model_path, e->space.similarity, isa_name(o->isa),
         o->backend == ENGINE_CUDA ? ", on the GPU" : "");
  printf("items    %s from %s in %s (%s items/s), %s bytes each\n", ctl_format_count(e->items.n).s, o->items_path,
         ctl_format_span(loaded_ns).s, ctl_format_rate(e->items.n, loaded_ns).s,
         ctl_format_count(e->space.bytes_per_item).s);
  printf("queries  %s from %s, k %s, batches of %s, %s %s\n", ctl_format_count(e->queries.n).s, o->queries_path,
         ctl_format_count(o->k).s, ctl_format_count(o->batch).s, ctl_format_count(o->n_threads).s,
         ctl_format_plural(o->n_threads, "thread", "threads"));
  if (o->filter)
    print_filter(e);
  if (o->max_per.n)
    printf("limit    at most %s %s with the same %.*s\n", ctl_format_count(o->max_per.n).s,
           ctl_format_plural(o->max_per.n, "hit", "hits"), (int)o->max_per.attribute.n, o->max_per.attribute.p);
  if (o->mmr.diversity > 0)
    print_mmr(o);
  if (o->min_score.is_given)
    printf("limit    no hit scores below %.9g\n", o->min_score.score);
  print_boosts(&o->boosts);
  if (o->not_before || o->expires)
    printf("alive    %s of %s items at %s; the others are never hits\n", ctl_format_count(e->space.n_alive).s,
           ctl_format_count(e->items.n).s, ctl_format_time(o->at_unix_ms).s);
  if (o->threads_per_search > 1)
    printf("         up to %s threads share a search\n", ctl_format_count(o->threads_per_search).s);
  ctl_eval_report_print(e->rows + first_row(e), e->n_methods - first_row(e), e->space.n_alive, stdout);
}

static void print_rows(const struct eval *e)
{
  const struct ctl_eval_setting setting = {
    .similarity = e->space.similarity,
    .isa = isa_name(e->options.isa),
    .n_items = e->items.n,
    .batch = e->options.batch,
    .n_threads = e->options.n_threads,
    .common = &e->queries.common,
  };

  for (size_t i = first_row(e); i < e->n_methods; i++)
    ctl_eval_report_print_json(&e->rows[i], &setting, stdout);
}

static err_t evaluate(struct eval *e)
{
  int64_t loaded_ns;

  TRY(open_all(e));
  TRY(add_methods(e));
  TRY(load_items(e, &loaded_ns));
  TRY(load_attributes(e));
  (void)engine_space_get(e->engine, 0, &e->space); /* there is one, and it stays */
  TRY(search(e, e->reference));
  for (size_t i = 1; i < e->n_methods; i++) {
    if (i != e->reference)
      TRY(search(e, i));
  }
  e->options.prints_json ? print_rows(e) : print_summary(e, loaded_ns);
  return ERR_OK;
}

static err_t run_eval(const struct ctl_options *options, int argc, char **argv)
{
  AUTO(ctl_eval_fini) struct eval e = { 0 };

  TRY(ctl_eval_options_parse(argc, argv, &e.options));
  TRY(find_attributes(&e, options->config_path));
  return evaluate(&e);
}

static bool has_rows_of(enum similarity_kind a, enum similarity_kind b)
{
  return similarity_at(a)->methods == similarity_at(b)->methods;
}

/* Print the names of the similarities that share a table, the first of which is `kind`. */
static void print_similarities(enum similarity_kind kind, FILE *out)
{
  fprintf(out, "  %s", similarity_at(kind)->name);
  for (enum similarity_kind other = kind + 1; other < N_SIMILARITIES; other++) {
    if (has_rows_of(kind, other))
      fprintf(out, ", %s", similarity_at(other)->name);
  }
  fputc('\n', out);
}

static void print_table_of(const struct methods *methods, FILE *out)
{
  char text[METHOD_TEXT_MAX];

  for (size_t i = 0; i < methods->n; i++) {
    methods_print_row(&methods->rows[i], text);
    fprintf(out, "    %c %-28s %s\n", methods->rows[i].is_exact ? ' ' : '~', text, methods->rows[i].summary);
  }
}

/* Print the engine's table of methods, the last section of the help. */
static void print_methods(FILE *out)
{
  fputs("\nMethods, by the similarity that the model file names (~: approximate, with a bound):\n", out);
  for (enum similarity_kind kind = 0; kind < N_SIMILARITIES; kind++) {
    bool is_first = true;
    for (enum similarity_kind earlier = 0; earlier < kind; earlier++)
      is_first &= !has_rows_of(earlier, kind);
    if (!is_first)
      continue;
    print_similarities(kind, out);
    print_table_of(similarity_at(kind)->methods, out);
  }
}

const struct ctl_command ctl_eval_command = {
  .name = "eval",
  .arguments = "--model FILE --items FILE --queries FILE [--method METHOD]... [--k N] [--targets] [--output FILE] "
               "[--filter TEXT] [--max-per ATTRIBUTE:N] [--mmr DIVERSITY[:CANDIDATES]] [--min-score SCORE] "
               "[--boost WEIGHT:ATTRIBUTE[:HALF_LIFE]]... [--boost-if WEIGHT:FILTER]... [--now TIME] [--expires NAME] "
               "[--attributes FILE]",
  .summary = "search files without daemon or Kafka, and compare the speed and recall of methods with exact",
  .help = "  --model FILE      the model\n"
          "  --items FILE      item_ids (I64 [items]) and item_embeddings (F32, F16, BF16 or F64\n"
          "                    [items, dimension]); for recjpq codes (U8 [items, splits]) instead\n"
          "  --queries FILE    query_embeddings (F32, F16, BF16 or F64 [queries, dimension]) and, for a model\n"
          "                    with user tables, user_ids (I64 [queries])\n"
          "  --method METHOD   such as exact (default) or 'average(4000)'; may be repeated\n"
          "  --k N             hits per query (default: 100)\n"
          "  --batch N         queries that are searched together (default: 32)\n"
          "  --threads N       batches that are searched at the same time (default: 1)\n"
          "  --threads-per-search N\n"
          "                    threads that share the search of one batch, on the processor (default: 1)\n"
          "  --backend NAME    where items are kept and searched: cpu (default) or cuda\n"
          "  --isa LEVEL       instruction set: auto (default), ref, avx2, avx512, avx512vnni, avx512vbmi, amx\n"
          "  --output FILE     write the answers of one method: top_ids (I64 [queries, k]), top_scores (F32\n"
          "                    [queries, k]), exact (U8 [queries]; 1: proven exact), bound (F32 [queries]; no\n"
          "                    item that is not a hit scores above it; -inf if all items are hits). Short rows\n"
          "                    are padded with id -1 and score -inf\n"
          "  --targets         also report how often a query's held-out item is among its hits. The queries' file\n"
          "                    must have target_ids (I64 [queries]), all of them ids of items\n"
          "  --filter TEXT     return only items that the filter admits, such as 'price < 20 and country in $1'. All\n"
          "                    methods, exact included, have the same filter\n"
          "  --parameters JSON the values of $1, $2, ... in the filter, such as '[[\"de\", \"at\"]]'\n"
          "  --max-per ATTRIBUTE:N\n"
          "                    at most N hits of a query with the same value of this attribute\n"
          "  --mmr DIVERSITY[:CANDIDATES]\n"
          "                    choose hits that differ from each other, among the best CANDIDATES (default: 5 times\n"
          "                    as many). All methods, exact included, choose their hits so\n"
          "  --min-score SCORE leave out hits with lower scores, even if fewer are left than --k\n"
          "  --boost WEIGHT:ATTRIBUTE[:HALF_LIFE]\n"
          "                    add WEIGHT times this attribute to the score of each item: 0.2:popularity. Of a time,\n"
          "                    add WEIGHT times 2^(-age / HALF_LIFE): 0.5:published:7d; s, m, h and d are its units.\n"
          "                    All methods, exact included, have the same boosts. May be repeated\n"
          "  --boost-if WEIGHT:FILTER\n"
          "                    add WEIGHT to the score of each item that this filter admits:\n"
          "                    \"0.3:section = 'graphics'\". May be repeated\n"
          "  --now TIME        count ages in boosts to this time: 2026-11-22T12:00:00Z, milliseconds since 1970, or\n"
          "                    90s, 10m, 2h, 7d ago (default: now). The output names it\n"
          "  --attributes FILE the attributes of the items, one JSON object per line, in any order:\n"
          "                    {\"id\": 17, \"attributes\": {\"country\": \"de\", \"price\": 9.5, \"tags\": [\"a\"]}}\n"
          "                    An item without a line has no attributes\n"
          "  --attribute NAME:TYPE\n"
          "                    the type of an attribute: bool, keyword, keywords, integer, number or time; repeated\n"
          "                    for each. Without it the types are those of --config FILE, given before eval\n"
          "  --expires NAME    leave out items whose attribute NAME, a time, has come, as catalogue.expires does\n"
          "  --not-before NAME leave out items whose attribute NAME, a time, has not come yet\n"
          "  --at TIME         the time of all searches, for these two: 2026-11-22T12:00:00Z, or 90s, 10m, 2h, 7d ago\n"
          "                    (default: now)\n"
          "  --json            print one JSON object per method and line in place of the table\n"
          "\n"
          "All files are .safetensors. Tensors with other names are ignored, so one file may have items and\n"
          "queries. Equal scores are ordered by id. exact is always searched, as the reference. Times are of whole\n"
          "batches. If there are few batches, they are searched again to measure their times.\n"
          "\n"
          "Example:\n"
          "  sluicectl eval --model mol.safetensors --items items.safetensors --queries queries.safetensors \\\n"
          "    --method 'average(1000)' --method 'average(4000)'\n",
  .print_more = print_methods,
  .run = run_eval,
};
