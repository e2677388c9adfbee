/* SPDX-License-Identifier: Apache-2.0 */
/* sluicectl eval: the engine on files. */
#include <jansson.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/mem.h"
#include "daemon/ctl/ctl_command.h"
#include "daemon/ctl/ctl_eval_options.h"
#include "daemon/ctl/ctl_eval_output.h"
#include "daemon/ctl/ctl_eval_report.h"
#include "daemon/ctl/ctl_format.h"
#include "daemon/ctl/ctl_progress.h"
#include "daemon/ctl/ctl_say.h"
#include "engine/method.h"
#include "engine/model/safetensors_write.h"
#include "engine/similarity.h"

/* A method that is searched by. */
struct eval_method {
  char text[METHOD_TEXT_MAX]; /* as it was given */
  char ran[METHOD_TEXT_MAX];  /* the name by which it runs */
  struct method method;
};

struct eval {
  struct eval_options options;
  struct eval_items items;
  struct eval_queries queries;
  struct engine *engine;
  struct engine_space_info space;
  struct eval_method *methods; /* [n_methods] [0] is exact, then those asked for */
  struct eval_row *rows;       /* [n_methods] */
  size_t n_methods;
  size_t reference;          /* where exact was asked for; 0: it was not */
  struct eval_answers exact; /* of the reference */
  struct ctl_progress progress;
};

static void eval_fini(struct eval *e)
{
  ctl_progress_hide(&e->progress);
  eval_answers_fini(&e->exact);
  engine_close(&e->engine);
  eval_items_fini(&e->items);
  eval_queries_fini(&e->queries);
  mem_free(&e->methods);
  mem_free(&e->rows);
  eval_options_fini(&e->options);
}

static void on_progress(void *context, size_t n_done)
{
  ctl_progress_tick(context, n_done, n_done);
}

/* What the model's metadata says that decides how the files are read. */
struct model_needs {
  bool codes;
  bool user_ids;
  bool dim; /* the model does not say how long a vector is */
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

/* Queries of a batch: no more than there are. */
static size_t batch_of(const struct eval *e)
{
  return e->options.batch < e->queries.n ? e->options.batch : e->queries.n;
}

/* The one place where the space is configured. */
static err_t open_engine(struct eval *e, const struct model_needs *needs)
{
  const struct eval_options *o = &e->options;
  const struct engine_space space = {
    .name = eval_space,
    .model_path = o->model_path,
    .dim = needs->dim ? e->items.width : 0,
  };
  const struct engine_config config = {
    .spaces = &space,
    .n_spaces = 1,
    .max_items = e->items.n,
    .max_k = o->k,
    .max_batch = batch_of(e),
    .isa = o->isa,
    .backend = o->backend,
  };
  char reason[384];

  err_code_t result = engine_open(&config, &e->engine);
  if (result != ERR_CONFIG)
    return result;
  snprintf(reason, sizeof reason, "%s", err_message());
  FAIL(result, "%s: its %s items cannot be held on this machine: take fewer, or a machine with more memory (%s)",
       o->items_path, ctl_format_count(e->items.n).s, reason);
}

static err_t open_all(struct eval *e)
{
  const struct kernels *kernels;
  struct model_needs needs;

  TRY(kernels_get(e->options.isa, &kernels));
  if (e->options.output_path)
    TRY(safetensors_verify_writable(e->options.output_path));
  TRY(read_needs(e->options.model_path, &needs));
  TRY(eval_items_open(e->options.items_path, needs.codes, &e->items));
  TRY(eval_queries_open(e->options.queries_path, needs.user_ids, e->options.has_targets, &e->queries));
  if (e->options.has_targets)
    TRY(eval_queries_verify_targets(&e->queries, &e->items));
  if (needs.user_ids && !e->queries.has_user_ids)
    ctl_say("%s has no tensor \"user_ids\", and the model has user tables: the queries go without a user",
            e->options.queries_path);
  return open_engine(e, &needs);
}

static err_t add_method(struct eval *e, const char *text)
{
  struct eval_method *method = &e->methods[e->n_methods];

  TRY(eval_queries_verify(&e->queries, e->engine, (uint32_t)e->options.k, text, &method->method));
  snprintf(method->text, sizeof method->text, "%s", text);
  method_print(&method->method, method->ran);
  e->n_methods++;
  return ERR_OK;
}

/* Which of those asked for is exact, under whatever name. */
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
  const struct eval_options *o = &e->options;

  TRY(mem_array(o->n_methods + 1, sizeof *e->methods, &e->methods));
  TRY(mem_array(o->n_methods + 1, sizeof *e->rows, &e->rows));
  TRY(add_method(e, "exact"));
  for (size_t i = 0; i < o->n_methods; i++)
    TRY(add_method(e, o->methods[i]));
  e->reference = find_reference(e);
  if (e->reference == 0)
    ctl_say("exact is searched, too: the others are compared with it");
  return ERR_OK;
}

static err_t load_items(struct eval *e, int64_t *out_ns)
{
  const struct eval_watch watch = { on_progress, &e->progress };
  int64_t begin_ns = clock_now_ns();

  ctl_progress_begin(&e->progress, "loading", e->items.n);
  TRY(eval_items_apply(&e->items, e->engine, &watch));
  ctl_progress_hide(&e->progress);
  *out_ns = clock_now_ns() - begin_ns;
  engine_space_get(e->engine, 0, &e->space);
  return ERR_OK;
}

/* Search by one method, the reference first. The output is the answers of the only method that was asked for. */
static err_t search(struct eval *e, size_t i)
{
  AUTO(eval_answers_fini) struct eval_answers answers = { 0 };
  const struct eval_options *o = &e->options;
  const struct eval_method *method = &e->methods[i];
  const struct eval_watch watch = { on_progress, &e->progress };
  const struct eval_search what = {
    .engine = e->engine, .queries = &e->queries, .k = o->k, .batch = batch_of(e), .n_threads = o->n_threads
  };

  ctl_progress_begin(&e->progress, method->text, e->queries.n);
  e->progress.unit = "queries";
  TRY(eval_run(&what, method->text, &method->method, &watch, &answers));
  ctl_progress_hide(&e->progress);
  TRY(eval_compare(&answers, i == e->reference ? &answers : &e->exact, o->has_targets ? &e->queries.target_ids : NULL,
                   &e->rows[i]));
  e->rows[i].method = method->text;
  e->rows[i].ran = method->ran;
  if (o->output_path && i == e->n_methods - 1)
    TRY(eval_output_write(o->output_path, o->model_path, method->ran, &answers));
  if (i == e->reference) {
    e->exact = answers;
    answers = (struct eval_answers){ 0 };
  }
  return ERR_OK;
}

/* exact has a row even where it was not asked for. */
static size_t first_row(const struct eval *e)
{
  return e->reference == 0 ? 0 : 1;
}

static void print_summary(const struct eval *e, int64_t loaded_ns)
{
  const struct eval_options *o = &e->options;

  printf("model    %s: %s, %s kernels%s\n", o->model_path, e->space.similarity, isa_name(o->isa),
         o->backend == ENGINE_CUDA ? ", on the GPU" : "");
  printf("items    %s from %s in %s (%s items/s), %s bytes each\n", ctl_format_count(e->items.n).s, o->items_path,
         ctl_format_span(loaded_ns).s, ctl_format_rate(e->items.n, loaded_ns).s,
         ctl_format_count(e->space.bytes_per_item).s);
  printf("queries  %s from %s, k %s, batches of %s, %s %s\n", ctl_format_count(e->queries.n).s, o->queries_path,
         ctl_format_count(o->k).s, ctl_format_count(o->batch).s, ctl_format_count(o->n_threads).s,
         ctl_plural(o->n_threads, "thread", "threads"));
  eval_print_table(e->rows + first_row(e), e->n_methods - first_row(e), e->items.n, stdout);
}

static void print_rows(const struct eval *e)
{
  const struct eval_setting setting = {
    .similarity = e->space.similarity,
    .isa = isa_name(e->options.isa),
    .n_items = e->items.n,
    .batch = e->options.batch,
    .n_threads = e->options.n_threads,
  };

  for (size_t i = first_row(e); i < e->n_methods; i++)
    eval_print_json(&e->rows[i], &setting, stdout);
}

static err_t evaluate(struct eval *e)
{
  int64_t loaded_ns;

  TRY(open_all(e));
  TRY(add_methods(e));
  TRY(load_items(e, &loaded_ns));
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
  AUTO(eval_fini) struct eval e = { 0 };

  (void)options;
  TRY(eval_options_parse(argc, argv, &e.options));
  return evaluate(&e);
}

const struct ctl_command ctl_eval_command = {
  .name = "eval",
  .arguments = "--model FILE --items FILE --queries FILE [--method METHOD]... [-k N] [--targets] [--output FILE]",
  .summary = "search files without Kafka, and compare methods with exact: how fast, and how much they find",
  .help = "  --model FILE      the model\n"
          "  --items FILE      item_ids (I64 [items]) with item_embeddings (F32, F16, BF16 or F64\n"
          "                    [items, dimension]), or with codes (U8 [items, splits]) for recjpq\n"
          "  --queries FILE    query_embeddings (F32, F16, BF16 or F64 [queries, dimension]), and user_ids\n"
          "                    (I64 [queries]) for a model with user tables\n"
          "  --method METHOD   'average(4000)', 'prune(8)', exact (default), ...; may be given more than once\n"
          "  -k N              hits of a query (100)\n"
          "  --batch N         queries that are searched together (32)\n"
          "  --threads N       batches that are searched at the same time (1)\n"
          "  --backend NAME    cpu (default) or cuda: where the items are kept and searched\n"
          "  --isa LEVEL       auto (default), ref, avx2, avx512, ...: the arithmetic\n"
          "  --output FILE     write the answers of one method: top_ids (I64 [queries, k]; -1 behind the last\n"
          "                    hit), top_scores (F32; -inf there), exact (U8 [queries]; 1 where the list is\n"
          "                    proven exact), bound (F32 [queries]; nothing left out scores above it; -inf\n"
          "                    where nothing was left out)\n"
          "  --targets         also tell how often the held-out item of a query is among its hits: the queries'\n"
          "                    file has target_ids (I64 [queries]), each among the items\n"
          "  --json            a JSON object for each method, one a line, in place of the table\n"
          "\n"
          "All files are .safetensors; tensors of other names are left alone, so that one file may hold items\n"
          "and queries. Equal scores are ordered by id. exact is always searched, as the reference. Times are\n"
          "of whole batches; where there are few, they are searched again for their times alone.\n",
  .run = run_eval,
};
