/* SPDX-License-Identifier: Apache-2.0 */
/* sluicectl dead-letters: show what the daemon could not use, and let it try again. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "daemon/ctl/text/ctl_format.h"
#include "daemon/ctl/text/ctl_option.h"
#include "daemon/ctl/letters/ctl_letters.h"
#include "daemon/ctl/text/ctl_print.h"
#include "daemon/ctl/letters/ctl_retry.h"
#include "daemon/ctl/text/ctl_say.h"

enum { NEWEST_DEFAULT = 20, NEWEST_MAX = 100000, PLACES_MAX = 1000, OPEN_WAIT_MS = 2000, OPEN_PERIOD_MS = 50 };

struct request {
  struct ctl_context *ctx;
  struct ctl_letters_selection selection;
  struct ctl_letter_place *places;
  struct ctl_retry_options retry;
  uint64_t newest;
  bool is_all;
  bool prints_json;
};

static void request_fini(struct request *r)
{
  mem_free(&r->places);
  ctl_context_close(&r->ctx);
}

static void print_json(const json_t *letter)
{
  ctl_print_json_value(letter, JSON_COMPACT | JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(17), stdout);
}

/* ---- list ---- */

/* The newest letters so far, and a few more. */
struct list {
  const struct config *config;
  uint64_t newest;
  json_t **letters;
  size_t n;
  size_t capacity;
};

static void list_fini(struct list *l)
{
  for (size_t i = 0; i < l->n; i++)
    json_decref(l->letters[i]);
  mem_free(&l->letters);
}

static const char *text_of(const json_t *letter, const char *name)
{
  const char *text = json_string_value(json_object_get(letter, name));

  return text ? text : "";
}

/* Times are written so that their texts have their order. Equal ones are in the order of their places. */
static int by_time(const void *a, const void *b)
{
  const json_t *x = *(json_t *const *)a, *y = *(json_t *const *)b;
  int order = strcmp(text_of(x, "time"), text_of(y, "time"));

  return order ? order : strverscmp(text_of(x, "letter"), text_of(y, "letter"));
}

/* Sort the letters, oldest first, and drop all but the newest. */
static void drop_old(struct list *l)
{
  size_t n_old = l->n > l->newest ? l->n - l->newest : 0;

  if (l->n)
    qsort(l->letters, l->n, sizeof(json_t *), by_time);
  for (size_t i = 0; i < n_old; i++)
    json_decref(l->letters[i]);
  l->n -= n_old;
  if (n_old)
    memmove(l->letters, l->letters + n_old, l->n * sizeof(json_t *));
}

static err_code_t take(void *context, const struct ctl_letter *letter)
{
  struct list *l = context;

  TRY(mem_grow(l->n + 1, sizeof(json_t *), &l->capacity, &l->letters));
  l->letters[l->n] = ctl_letter_json(letter, l->config, false);
  if (!l->letters[l->n])
    FAIL(ERR_MEMORY, "no memory for a letter");
  if (++l->n >= 2 * l->newest)
    drop_old(l);
  return ERR_OK;
}

/* ---- The table ---- */

static const char *const columns[] = { "letter", "time", "topic", "key", "reason" };

enum { N_COLUMNS = sizeof columns / sizeof columns[0], COLUMN_MAX = 40 };

/* How wide a column is: as its widest value, but one of more than COLUMN_MAX moves the rest of its row instead. */
static size_t width_of(const struct list *l, const char *column)
{
  size_t width = strlen(column);

  for (size_t i = 0; i < l->n; i++) {
    size_t n = ctl_print_key(json_object_get(l->letters[i], column), NULL);
    width = n > width && n <= COLUMN_MAX ? n : width;
  }
  return width;
}

/* letter  NULL: print the columns' names */
static void print_row(const json_t *letter, const size_t widths[N_COLUMNS])
{
  for (size_t c = 0; c < N_COLUMNS; c++) {
    size_t n = letter ? ctl_print_key(json_object_get(letter, columns[c]), stdout) : ctl_print_text(columns[c], stdout);
    if (c + 1 < N_COLUMNS)
      ctl_print_spaces((n < widths[c] ? widths[c] - n : 0) + 2, stdout);
  }
  putchar('\n');
}

static void print_table(const struct list *l)
{
  size_t widths[N_COLUMNS];

  for (size_t c = 0; c < N_COLUMNS; c++)
    widths[c] = width_of(l, columns[c]);
  print_row(NULL, widths);
  for (size_t i = 0; i < l->n; i++)
    print_row(l->letters[i], widths);
}

/* Wait a little for letters that the daemon has written and Kafka does not have yet. A daemon that does not answer, or
 * cannot write its letters, keeps nobody from reading those that are there. */
static void await_open_letters(struct ctl_context *ctx)
{
  int64_t until_ns = clock_now_ns() + OPEN_WAIT_MS * CLOCK_NS_PER_MS;

  for (;;) {
    AUTO(ctl_json_close) json_t *status = NULL;
    if (http_get_status(ctx->http, &status) != ERR_OK)
      return;
    uint64_t n = ctl_json_count(status, "undelivered_dead_letters");
    if (n == 0)
      return;
    if (clock_now_ns() >= until_ns) {
      ctl_say("the daemon has %s %s that Kafka does not have yet: list again for them", ctl_format_count(n).s,
              ctl_format_plural(n, "letter", "letters"));
      return;
    }
    clock_sleep_ns(OPEN_PERIOD_MS * CLOCK_NS_PER_MS);
  }
}

static err_t list(const struct request *r)
{
  AUTO(list_fini) struct list l = { .config = r->ctx->config, .newest = r->newest };
  bool is_narrow = r->selection.filter.topic || r->selection.filter.reason;

  await_open_letters(r->ctx);
  TRY(ctl_letters_visit_all(r->ctx, &r->selection, is_narrow ? 0 : r->newest, take, &l));
  drop_old(&l);
  for (size_t i = 0; i < l.n && r->prints_json; i++)
    print_json(l.letters[i]);
  if (!r->prints_json && l.n)
    print_table(&l);
  else if (!r->prints_json)
    puts("no dead letters");
  return ERR_OK;
}

/* ---- show ---- */

static err_code_t show_letter(void *context, const struct ctl_letter *letter)
{
  const struct request *r = context;
  AUTO(ctl_json_close) json_t *json = ctl_letter_json(letter, r->ctx->config, true);

  if (!json)
    FAIL(ERR_MEMORY, "no memory for a letter");
  r->prints_json ? print_json(json) : ctl_letter_print(json, stdout);
  return ERR_OK;
}

/* ---- The command line ---- */

static err_t take_options(struct request *r, int argc, char **argv)
{
  struct ctl_letter_filter *filter = &r->selection.filter;
  const struct ctl_option known[] = {
    { "newest", .number = &r->newest, .min = 1, .max = NEWEST_MAX },
    { "since", .unix_ms = &r->selection.since_unix_ms },
    { "reason", .text = &filter->reason },
    { "topic", .text = &filter->topic },
    { "all", .is_given = &r->is_all },
    { "dry-run", .is_given = &r->retry.is_dry_run },
    { "overwrite", .is_given = &r->retry.overwrites },
    { "json", .is_given = &r->prints_json },
    { 0 },
  };

  return ctl_option_take(known, NULL, argc, argv);
}

static err_t take_places(struct request *r, int n, char **words)
{
  if (n > PLACES_MAX)
    FAIL(ERR_USAGE, "%d letters are named, at most %d", n, PLACES_MAX);
  TRY(mem_array((size_t)n, sizeof *r->places, &r->places));
  for (int i = 0; i < n; i++)
    TRY(ctl_letters_place(words[i], &r->places[i]));
  r->selection.places = r->places;
  r->selection.n_places = (size_t)n;
  return ERR_OK;
}

/* Verify that exactly the letters that the user means are selected. */
static err_t verify_selection(const struct request *r, const char *word)
{
  bool is_list = strcmp(word, "list") == 0, is_retry = strcmp(word, "retry") == 0;
  bool is_narrow = r->selection.filter.topic || r->selection.filter.reason || r->selection.since_unix_ms;

  if (is_list ? r->selection.n_places > 0 : r->is_all == (r->selection.n_places > 0))
    FAIL(ERR_USAGE, is_list ? "list expects options only" : "name letters, such as 0:17, or give --all%s",
         is_retry ? ", which --reason, --topic and --since narrow" : "");
  if (r->selection.n_places && is_narrow)
    FAIL(ERR_USAGE, "--reason, --topic and --since choose letters: do not name letters as well");
  return ERR_OK;
}

static err_t run_dead_letters(const struct ctl_options *options, int argc, char **argv)
{
  AUTO(request_fini) struct request r = { .newest = NEWEST_DEFAULT };

  TRY(take_options(&r, argc, argv));
  const char *word = optind < argc ? argv[optind] : "";
  if (strcmp(word, "list") != 0 && strcmp(word, "show") != 0 && strcmp(word, "retry") != 0)
    FAIL(ERR_USAGE, "dead-letters expects list, show or retry");
  TRY(take_places(&r, argc - optind - 1, argv + optind + 1));
  TRY(verify_selection(&r, word));
  TRY(ctl_context_open(options, &r.ctx));
  TRY(ctl_context_verify_catalogue(r.ctx->config));
  if (*word == 'l')
    return list(&r);
  if (*word == 's')
    return ctl_letters_visit_all(r.ctx, &r.selection, 0, show_letter, &r);
  return ctl_retry(r.ctx, &r.selection, &r.retry);
}

const struct ctl_command ctl_dead_letters_command = {
  .name = "dead-letters",
  .arguments = "list | show LETTER... | retry LETTER... | retry --all",
  .summary = "show what the daemon could not use, and let it try again",
  .help =
      "  list             show the newest letters, oldest first\n"
      "  show LETTER      show a letter with the record's value; list has its name, such as 0:17\n"
      "  retry LETTER     write the record to its topic and partition again, and wait until the daemon has read it\n"
      "  --newest N       how many letters to list (default: 20)\n"
      "  --since TIME     only letters since then: 2026-11-22T12:00:00Z, or 90s, 10m, 2h, 7d ago\n"
      "  --reason TEXT    only letters whose reason has this text, in upper or lower case\n"
      "  --topic TOPIC    only letters about records of this topic\n"
      "  --json           print letters as JSON, one per line\n"
      "  --all            show or retry all letters that match\n"
      "  --dry-run        say what retry would do, and do nothing\n"
      "  --overwrite      retry even if the item has a newer record, which is then replaced\n"
      "\n"
      "Retry after the cause is gone: a space that was not configured, a model of another length. A record that\n"
      "is wrong in itself would only be refused again: write a good one with the same key. The letters stay in\n"
      "their topic, and are not marked: with --all, use --since to leave out what was retried before. retry leaves\n"
      "out letters without a value and items that have a newer record. With --all it also leaves out records that\n"
      "came back from an earlier retry, and queries and seen items unless --topic names their topic. It cannot see\n"
      "that an item was deleted meanwhile: it would come back.\n"
      "The exit status is 1 if a letter that was named is left out, or if the daemon refused a record again.\n",
  .run = run_dead_letters,
};
